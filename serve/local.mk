# probing-serve: HTTP, plain text.  Links libwebsockets, which nothing else does; `configure --without-serve` leaves it out.
if SERVE
bin_PROGRAMS += probing-serve
endif
SERVE_ROUTES = %D%/routes/server.c %D%/routes/health.c %D%/routes/processes.c %D%/routes/target.c %D%/routes/stacks.c \
	%D%/routes/query.c %D%/routes/tables.c %D%/routes/tasks.c %D%/routes/profile.c \
	%D%/routes/inject.c %D%/routes/detach.c %D%/routes/config.c %D%/routes/setting.c %D%/routes/setting_put.c \
	%D%/routes/crash_put.c %D%/routes/eval.c %D%/routes/eval_end.c %D%/routes/complete.c
# What the server sees by itself, and sends as it comes.
SERVE_ROUTES += %D%/routes/skills.c %D%/routes/skill_run.c %D%/routes/mcp.c
SERVE_ROUTES += %D%/routes/history.c
SERVE_ROUTES += %D%/routes/targets_add.c %D%/routes/openapi.c %D%/routes/threads.c %D%/routes/table.c %D%/routes/crashes.c %D%/routes/object.c %D%/routes/tensor.c \
	%D%/routes/source.c %D%/routes/snapshot.c
SERVE_ROUTES += %D%/routes/tokens.c %D%/routes/tokens_end.c %D%/routes/command.c
probing_serve_SOURCES = %D%/main.c %D%/serve.h %D%/grants.c %D%/doors.h %D%/places.c %D%/doorman.c %D%/first_bytes.c \
	%D%/log.c %D%/log.h %D%/access.c %D%/access.h %D%/http.c %D%/http.h %D%/text.c %D%/text.h %D%/command.c %D%/command.h \
	%D%/work.c %D%/work.h %D%/targets.c %D%/targets.h %D%/route.c %D%/route.h %D%/words.h %D%/answer.c %D%/compress.c %D%/fields.c %D%/fields.h %D%/evaluations.c %D%/evaluations.h \
	%D%/tokens.c %D%/tokens.h %D%/life.c %D%/life.h %D%/ask.c %D%/ask.h %D%/looks.c %D%/looks.h %D%/text_python.c %D%/text_python.h %D%/elsewhere.c %D%/elsewhere.h \
	%D%/routes/by_command.c %D%/routes/by_command.h %D%/routes/rows.h $(SERVE_ROUTES)
probing_serve_SOURCES += %D%/diagnose.c %D%/diagnose.h
probing_serve_SOURCES += %D%/mcp/mcp.c %D%/mcp/mcp.h %D%/mcp/tools.c %D%/mcp/look.c %D%/mcp/eval.c %D%/mcp/stdio.c
probing_serve_SOURCES += %D%/assets.c %D%/assets.h
probing_serve_CFLAGS = $(AM_CFLAGS) $(WEBSOCKETS_CFLAGS)
probing_serve_LDADD = libprb.la $(JANSSON_LIBS) $(WEBSOCKETS_LIBS) $(ZLIB_LIBS) -ldl
BUILT_SOURCES += %D%/routes.inc
CLEANFILES += %D%/routes.inc
# The page: TypeScript in page/src, compiled into page/js, which is in git, so that make needs no node (page/README.md).
PAGE_MODULES = main keys overview crash_list net watch looks live polled parts place format theme stacks moments source locals sql grid chart \
	profile sampling flame flame_view canvas training memory tensors tensor crashes tasks console settings
PAGE_FILES = $(PAGE_MODULES:%=%D%/page/js/%.js) %D%/page/page.css %D%/page/icon.svg %D%/page/vendor/preact.js %D%/page/vendor/hooks.js \
	%D%/page/vendor/uPlot.js %D%/page/vendor/uPlot.css
EXTRA_DIST += %D%/page/embed.sh %D%/page/index.html %D%/page/tsconfig.json %D%/page/README.md %D%/page/vendor/VENDOR %D%/page/vendor/LICENSE.preact \
	%D%/page/vendor/LICENSE.uPlot $(PAGE_FILES) %D%/page/src
EXTRA_DIST += %D%/pictures/overview.png %D%/pictures/stacks.png %D%/pictures/profile.png %D%/pictures/training.png %D%/pictures/memory.png %D%/pictures/tensors.png \
	%D%/pictures/crashes.png %D%/pictures/sql.png %D%/pictures/tasks.png %D%/pictures/console.png %D%/pictures/settings.png
BUILT_SOURCES += %D%/assets.inc
CLEANFILES += %D%/assets.inc
%D%/assets.inc: $(PAGE_FILES) %D%/page/index.html %D%/page/embed.sh
	$(AM_V_GEN)cd $(srcdir) && sh %D%/page/embed.sh %D%/page/index.html $(PAGE_FILES) >$(abs_builddir)/$@-t && mv $(abs_builddir)/$@-t $(abs_builddir)/$@
# What the server sees by itself, and sends as it changes.
probing_serve_SOURCES += %D%/watch.c %D%/watch.h %D%/watch_step.c %D%/watch_step.h %D%/live.c %D%/live.h %D%/runs.c %D%/runs.h \
	%D%/routes/profile_file.c %D%/routes/profile_file.h
SERVE_ROUTES += %D%/routes/profiles.c %D%/routes/profile_begin.c %D%/routes/profile_one.c %D%/routes/profile_end.c %D%/routes/profile_diff.c %D%/routes/metrics.c
probing_serve_SOURCES += %D%/collector.c %D%/collector.h
%D%/routes.inc: $(srcdir)/%D%/local.mk
	$(call write_list,ROUTE,$(SERVE_ROUTES))
