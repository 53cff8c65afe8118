# The gdb plugin: Python that gdb runs, over libprobing.so.  To add a command: command.py.
GDB_PACKAGE = %D%/probing_gdb/__init__.py %D%/probing_gdb/calls.py %D%/probing_gdb/command.py %D%/probing_gdb/expression.py \
	%D%/probing_gdb/filter.py %D%/probing_gdb/functions.py %D%/probing_gdb/interrupts.py %D%/probing_gdb/library.py \
	%D%/probing_gdb/model.py %D%/probing_gdb/printers.py %D%/probing_gdb/progress.py %D%/probing_gdb/selection.py \
	%D%/probing_gdb/session.py %D%/probing_gdb/show.py %D%/probing_gdb/source.py %D%/probing_gdb/structs.py %D%/probing_gdb/sql.py %D%/probing_gdb/text.py %D%/probing_gdb/values.py
GDB_COMMANDS = %D%/probing_gdb/commands/__init__.py %D%/probing_gdb/commands/backtrace.py %D%/probing_gdb/commands/backtrace_full.py %D%/probing_gdb/commands/debug.py \
	%D%/probing_gdb/commands/down.py %D%/probing_gdb/commands/eval.py %D%/probing_gdb/commands/frame.py %D%/probing_gdb/commands/gil.py \
	%D%/probing_gdb/commands/list.py %D%/probing_gdb/commands/locals.py %D%/probing_gdb/commands/print.py \
	%D%/probing_gdb/commands/query.py %D%/probing_gdb/commands/snapshot.py %D%/probing_gdb/commands/tables.py \
	%D%/probing_gdb/commands/tensor.py %D%/probing_gdb/commands/threads.py %D%/probing_gdb/commands/up.py

gdbplugindir = $(pkgdatadir)/gdb
gdbpackagedir = $(gdbplugindir)/probing_gdb
gdbcommandsdir = $(gdbpackagedir)/commands
dist_gdbplugin_DATA = %D%/probing-gdb.py
dist_gdbpackage_DATA = $(GDB_PACKAGE)
nodist_gdbpackage_DATA = %D%/probing_gdb/installed.py
dist_gdbcommands_DATA = $(GDB_COMMANDS)

# The structs of the public headers for ctypes, printed into the source tree when a header changes.
GDB_MIRRORED = $(srcdir)/lib/probing.h $(srcdir)/lib/format/format.h
$(srcdir)/%D%/probing_gdb/structs.py: $(srcdir)/%D%/mirror.py $(GDB_MIRRORED)
	$(AM_V_GEN)test '$(PYTHON)' = : || { $(PYTHON) $(srcdir)/%D%/mirror.py $(GDB_MIRRORED) >$@.new && mv $@.new $@; }
EXTRA_DIST += %D%/mirror.py

# Where the library and the command are once they are installed.
%D%/probing_gdb/installed.py: Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && printf 'LIBRARIES = "%s"\nPROGRAMS = "%s"\n' '$(libdir)' '$(bindir)' >$@
CLEANFILES += %D%/probing_gdb/installed.py

# gdb loads DIR/auto-load/PATH-gdb.gdb by itself when a program maps PATH (gdb's manual, "objfile-gdbdotext file"), DIR being its
# own data directory: --with-gdb-auto-load=/usr/share/gdb/auto-load.  For interpreters at other places:
# make install GDB_OBJFILES='/opt/python/bin/python3.12'.  Not -gdb.py, which CPython's own packages install.
GDB_OBJFILES =
# The minors of the layouts, but 3.4 and 3.5; up to 3.7 the name of a library ends in m.
GDB_MINORS = $(filter-out 4 5,$(patsubst 7,7m,$(patsubst 6,6m,$(patsubst 3.%.def,%,$(filter-out %t.def,$(notdir $(LAYOUTS)))))))
GDB_USUAL = $(GDB_MINORS:%=/usr/bin/python3.%) $(GDB_MINORS:%=/usr/local/bin/python3.%) \
	$(GDB_MINORS:%=/usr/lib/$(host_cpu)-linux-gnu/libpython3.%.so.1.0) $(GDB_MINORS:%=/usr/lib64/libpython3.%.so.1.0) \
	$(GDB_MINORS:%=/usr/local/lib/libpython3.%.so.1.0)
gdb-install:
	@for path in $(GDB_USUAL) $(GDB_OBJFILES); do \
		file='$(DESTDIR)$(GDB_AUTO_LOAD_DIR)'$$path-gdb.gdb; \
		$(MKDIR_P) "$${file%/*}" && echo 'source $(gdbplugindir)/probing-gdb.py' >"$$file" || exit 1; \
	done
gdb-uninstall:
	@for path in $(GDB_USUAL) $(GDB_OBJFILES); do \
		folder='$(DESTDIR)$(GDB_AUTO_LOAD_DIR)'$${path%/*}; \
		rm -f "$$folder/$${path##*/}-gdb.gdb"; \
		while test "$$folder" != '$(DESTDIR)$(GDB_AUTO_LOAD_DIR)' && rmdir "$$folder" 2>/dev/null; do folder=$${folder%/*}; done; \
	done
	@rmdir '$(DESTDIR)$(GDB_AUTO_LOAD_DIR)' 2>/dev/null || :
	@test ! -d '$(DESTDIR)$(gdbplugindir)' || find '$(DESTDIR)$(gdbplugindir)' -name __pycache__ -prune -exec rm -rf {} + # gdb's byte code
install-data-local: gdb-install
uninstall-local: gdb-uninstall
.PHONY: gdb-install gdb-uninstall
