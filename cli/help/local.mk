# What the program says of itself: help, man page, completions, version.
probing_SOURCES += %D%/help.h %D%/json.c %D%/man.c %D%/man.h %D%/usage.c %D%/candidates.c %D%/candidates.h

# The completion scripts, as strings.
COMPLETE_SHELLS = bash zsh fish
EXTRA_DIST += %D%/complete.bash %D%/complete.zsh %D%/complete.fish
BUILT_SOURCES += complete_scripts.h
CLEANFILES += complete_scripts.h
complete_scripts.h: %D%/complete.bash %D%/complete.zsh %D%/complete.fish
	$(AM_V_GEN)for shell in $(COMPLETE_SHELLS); do echo "static const char prb_complete_$$shell[] ="; \
	sed -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/' $(srcdir)/%D%/complete.$$shell || exit 1; echo '    ;'; done >$@.new && mv $@.new $@
