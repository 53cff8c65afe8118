# The gdb plugin: Python that gdb runs, over libprobing.so.
GDB_PLUGIN = %D%/probing-gdb.py
GDB_PACKAGE = %D%/probing_gdb/__init__.py %D%/probing_gdb/command.py %D%/probing_gdb/library.py %D%/probing_gdb/model.py \
	%D%/probing_gdb/progress.py %D%/probing_gdb/session.py %D%/probing_gdb/show.py %D%/probing_gdb/text.py
GDB_COMMANDS = %D%/probing_gdb/commands/__init__.py %D%/probing_gdb/commands/backtrace.py

gdbplugindir = $(pkgdatadir)/gdb
gdbpackagedir = $(gdbplugindir)/probing_gdb
gdbcommandsdir = $(gdbpackagedir)/commands
dist_gdbplugin_DATA = $(GDB_PLUGIN)
dist_gdbpackage_DATA = $(GDB_PACKAGE)
dist_gdbcommands_DATA = $(GDB_COMMANDS)
