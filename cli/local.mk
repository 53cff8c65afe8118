# The command line: main and the shared parts here, the commands one file each in the folder of their subject.
# Links only what probing.h and inject/ export.
noinst_PROGRAMS += probing
probing_SOURCES = %D%/main.c %D%/command.h %D%/commands.c %D%/fail.c %D%/options.c %D%/options.h %D%/ends.c %D%/ends.h %D%/target.c %D%/python.c %D%/python.h
# The commands, in the order of the help.  To add one: command.h.
CLI_COMMANDS = %D%/look/list.c %D%/look/backtrace.c %D%/look/tasks.c %D%/fleet/hang.c %D%/debug/debug.c %D%/debug/dap.c \
	%D%/look/inspect.c %D%/look/memory.c %D%/look/query.c %D%/look/tables.c %D%/look/snapshot.c %D%/look/skill.c %D%/look/export.c %D%/profile/profile.c %D%/profile/diff.c \
	%D%/top/top.c %D%/crash/crash.c %D%/probe/inject.c %D%/probe/eval.c %D%/repl/repl.c %D%/probe/config.c \
	%D%/probe/detach.c %D%/probe/kernel.c %D%/probe/launch.c %D%/store/collect.c %D%/cluster/cluster.c %D%/serve/serve.c %D%/serve/mcp.c %D%/share/gdb.c %D%/share/gdb_script.c %D%/share/vscode.c %D%/demo/demo.c %D%/doctor/doctor.c %D%/help/help.c %D%/help/version.c %D%/help/completion.c
probing_SOURCES += $(CLI_COMMANDS) %D%/serve/program.c %D%/serve/program.h %D%/serve/servers.c %D%/serve/servers.h
BUILT_SOURCES += %D%/commands.inc
CLEANFILES += %D%/commands.inc
%D%/commands.inc: $(srcdir)/%D%/local.mk
	$(call write_list,COMMAND,$(CLI_COMMANDS))

# Runs where it stands: .libs/probing looks for its library in .libs, and is never installed.
probing_LDFLAGS = $(AM_LDFLAGS) -no-fast-install
probing_LDADD = libprobing.la $(JANSSON_LIBS) -ldl
# The one to install, of the same objects.  It looks for its library in libdir, and says so but where the loader looks
# by itself (its own folders; not /usr/local/lib, which it knows by a cache that may be old).
bin_PROGRAMS += %D%/installed/probing
loader_folders = /lib /usr/lib /lib64 /usr/lib64 /lib/%-linux-gnu /usr/lib/%-linux-gnu
%C%_installed_probing_SOURCES = $(probing_SOURCES)
%C%_installed_probing_LDFLAGS = $(AM_LDFLAGS) $(addprefix -Wl$(comma)-rpath$(comma),$(filter-out $(loader_folders),$(libdir)))
%C%_installed_probing_LDADD = $(probing_LDADD)
comma = ,

include cli/print/local.mk
include cli/help/local.mk
include cli/look/local.mk
include cli/debug/local.mk
include cli/profile/local.mk
include cli/top/local.mk
include cli/crash/local.mk
include cli/probe/local.mk
include cli/repl/local.mk
include cli/store/local.mk
include cli/cluster/local.mk
include cli/demo/local.mk
include cli/share/local.mk
include cli/doctor/local.mk
include cli/fleet/local.mk

# Printed by the program itself, so they say what the descriptors say.  Built for another processor, it runs by RUN_HOST
# (configure), or they are left out.
if PRINTS
man_MANS = %D%/probing.1
bashcompletiondir = $(datadir)/bash-completion/completions
bashcompletion_DATA = %D%/completions/probing
zshcompletiondir = $(datadir)/zsh/site-functions
zshcompletion_DATA = %D%/completions/_probing
fishcompletiondir = $(datadir)/fish/vendor_completions.d
fishcompletion_DATA = %D%/completions/probing.fish
PROBING_PRINTED = $(man_MANS) $(bashcompletion_DATA) $(zshcompletion_DATA) $(fishcompletion_DATA)
CLEANFILES += $(PROBING_PRINTED)
print_to = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(RUN_PROBING)

%D%/probing.1: probing$(EXEEXT)
	$(print_to) help --man >$@.new && mv $@.new $@
%D%/completions/probing: probing$(EXEEXT)
	$(print_to) completion bash >$@.new && mv $@.new $@
%D%/completions/_probing: probing$(EXEEXT)
	$(print_to) completion zsh >$@.new && mv $@.new $@
%D%/completions/probing.fish: probing$(EXEEXT)
	$(print_to) completion fish >$@.new && mv $@.new $@
endif
