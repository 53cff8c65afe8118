libprb_la_SOURCES += %D%/index.h %D%/profile.h %D%/doing.h %D%/member.h \
	%D%/async.c %D%/count.c %D%/doing.c %D%/family.h %D%/family.c %D%/index.c %D%/member.c %D%/collapsed.h %D%/collapsed.c %D%/name.c %D%/native.c %D%/waits.def %D%/profile.c %D%/profiler.c %D%/root.c %D%/rest.c %D%/timeline.c
libprb_la_SOURCES += %D%/flamegraph.h %D%/format.h %D%/formats.def %D%/flame.c %D%/format.c %D%/label.c %D%/saved.h %D%/saved.c %D%/visits.c
# One file a format.
libprb_la_SOURCES += %D%/format/chrome.c %D%/format/collapsed.c %D%/format/firefox.c \
	%D%/format/flamegraph.c %D%/format/heatmap.c %D%/format/pprof.c %D%/format/speedscope.c %D%/format/sqlite.c

# The flame graph's script as a C string.
EXTRA_DIST += %D%/format/flamegraph.js
BUILT_SOURCES += flamegraph_js.h
CLEANFILES += flamegraph_js.h
flamegraph_js.h: $(srcdir)/%D%/format/flamegraph.js
	$(AM_V_GEN){ echo '/* Made of flamegraph.js. */'; echo 'static const char prb_flamegraph_js[] ='; \
	sed -e 's/[\\"]/\\&/g' -e 's/.*/    "&\\n"/' $(srcdir)/%D%/format/flamegraph.js; echo '    ;'; } >$@.new && mv $@.new $@
