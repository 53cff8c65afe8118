# The command line: main, the shared parts, one file a command (commands.def).  Links only what probing.h and inject/ export.
bin_PROGRAMS += probing
probing_SOURCES = %D%/main.c %D%/command.h %D%/commands.def %D%/options.c %D%/options.h %D%/ends.c %D%/ends.h %D%/target.c \
	%D%/out.c %D%/out.h %D%/grid.c %D%/grid.h %D%/stacks.c %D%/stacks.h %D%/watch.c %D%/watch.h \
	%D%/help.h %D%/man.c %D%/man.h \
	%D%/backtrace.c %D%/crash.c %D%/crash.h %D%/crash_list.c %D%/crash_show.c %D%/completion.c %D%/dap.c %D%/serve.c %D%/serve.h \
	%D%/debug.c %D%/dump.c %D%/dump.h %D%/help.c %D%/list.c %D%/profile.c %D%/ranks.c %D%/ranks.h %D%/diff.c %D%/query.c %D%/snapshot.c \
	%D%/screen.c %D%/screen.h %D%/top.c %D%/top.h %D%/top_draw.c %D%/top_model.c \
	%D%/tables.c %D%/tasks.c %D%/version.c %D%/probe.c %D%/probe.h %D%/evaluate.c %D%/evaluate.h \
	%D%/inject.c %D%/eval.c %D%/config.c %D%/config_command.h %D%/detach.c %D%/launch.c \
	%D%/repl.c %D%/repl.h %D%/repl_commands.c %D%/line.c %D%/line.h
# Built where it stands: .libs/probing finds its library as the installed one does.
probing_LDFLAGS = $(AM_LDFLAGS) -no-fast-install
probing_LDADD = libprobing.la $(JANSSON_LIBS) -ldl -lm

# Printed by the program itself, so they say what the descriptors say.
man_MANS = %D%/probing.1
bashcompletiondir = $(datadir)/bash-completion/completions
bashcompletion_DATA = %D%/completions/probing
zshcompletiondir = $(datadir)/zsh/site-functions
zshcompletion_DATA = %D%/completions/_probing
fishcompletiondir = $(datadir)/fish/vendor_completions.d
fishcompletion_DATA = %D%/completions/probing.fish
PROBING_PRINTED = $(man_MANS) $(bashcompletion_DATA) $(zshcompletion_DATA) $(fishcompletion_DATA)
CLEANFILES += $(PROBING_PRINTED)
print_to = $(AM_V_GEN)$(MKDIR_P) $(@D) && ./probing$(EXEEXT)

%D%/probing.1: probing$(EXEEXT)
	$(print_to) help --man >$@.new && mv $@.new $@
%D%/completions/probing: probing$(EXEEXT)
	$(print_to) completion bash >$@.new && mv $@.new $@
%D%/completions/_probing: probing$(EXEEXT)
	$(print_to) completion zsh >$@.new && mv $@.new $@
%D%/completions/probing.fish: probing$(EXEEXT)
	$(print_to) completion fish >$@.new && mv $@.new $@
