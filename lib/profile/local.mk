libprb_la_SOURCES += %D%/profile.h %D%/profile.c %D%/collapsed.h %D%/collapsed.c \
	%D%/saved.h %D%/saved.c %D%/calls.c %D%/flame.c %D%/label.c %D%/root.c %D%/timeline.c
libprb_la_SOURCES += %D%/format/format.h %D%/format/format.c %D%/format/formats.def \
	%D%/format/flamegraph.h
# One file a format.
libprb_la_SOURCES += %D%/format/chrome.c %D%/format/collapsed.c %D%/format/firefox.c \
	%D%/format/flamegraph.c %D%/format/heatmap.c %D%/format/pprof.c %D%/format/speedscope.c \
	%D%/format/sqlite.c

# The flame graph's script as a C string.
EXTRA_DIST += %D%/format/flamegraph.js
BUILT_SOURCES += flamegraph_js.h
CLEANFILES += flamegraph_js.h
flamegraph_js.h: $(srcdir)/%D%/format/flamegraph.js
	$(AM_V_GEN){ echo '/* Made of flamegraph.js. */'; echo 'static const char prb_flamegraph_js[] ='; \
	sed -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/' $(srcdir)/%D%/format/flamegraph.js; echo '    ;'; } >$@.new && mv $@.new $@
