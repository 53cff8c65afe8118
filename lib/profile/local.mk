libprb_la_SOURCES += %D%/profile.h %D%/profile.c %D%/collapsed.h %D%/collapsed.c \
	%D%/saved.h %D%/saved.c %D%/packed.h %D%/pack.c %D%/add.c %D%/calls.c %D%/flame.c %D%/kept.h %D%/kept.c %D%/label.c %D%/root.c %D%/timeline.c
libprb_la_SOURCES += %D%/format/format.h %D%/format/format.c \
	%D%/format/flamegraph.h
# One file a format, in the order of the help; the first is the one without --format.
# To add one: format/format.h.
PROFILE_FORMATS = %D%/format/flamegraph.c %D%/format/speedscope.c %D%/format/collapsed.c \
	%D%/format/pprof.c %D%/format/perfetto.c %D%/format/chrome.c %D%/format/firefox.c %D%/format/sqlite.c \
	%D%/format/heatmap.c
libprb_la_SOURCES += $(PROFILE_FORMATS)
BUILT_SOURCES += %D%/format/formats.inc
CLEANFILES += %D%/format/formats.inc
%D%/format/formats.inc: $(srcdir)/%D%/local.mk
	$(call write_list,FORMAT,$(PROFILE_FORMATS))

# The flame graph's script as a C string.
EXTRA_DIST += %D%/format/flamegraph.js
BUILT_SOURCES += flamegraph_js.h
CLEANFILES += flamegraph_js.h
flamegraph_js.h: $(srcdir)/%D%/format/flamegraph.js
	$(AM_V_GEN){ echo '/* Made of flamegraph.js. */'; echo 'static const char prb_flamegraph_js[] ='; \
	sed -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/' $(srcdir)/%D%/format/flamegraph.js; echo '    ;'; } >$@.new && mv $@.new $@
