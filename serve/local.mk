# probing-serve: HTTP, WebSockets, plain text.  Links libwebsockets, which nothing else does; `configure --without-serve` leaves it out.
if SERVE
bin_PROGRAMS += probing-serve
endif
# A route is one file with its name here; routes.inc is made of this list.
SERVE_ROUTES = %D%/routes/agent.c %D%/routes/agent_end.c %D%/routes/command.c %D%/routes/complete.c %D%/routes/config.c %D%/routes/crash_put.c %D%/routes/crashes.c \
	%D%/routes/debug.c %D%/routes/debug_end.c %D%/routes/detach.c %D%/routes/eval.c %D%/routes/eval_end.c %D%/routes/health.c %D%/routes/history.c %D%/routes/inject.c \
	%D%/routes/job.c %D%/routes/job_crashes.c %D%/routes/job_hang.c %D%/routes/job_profile.c %D%/routes/job_query.c %D%/routes/job_skill_run.c %D%/routes/job_stacks.c %D%/routes/jobs.c \
	%D%/routes/mcp.c %D%/routes/metrics.c %D%/routes/object.c %D%/routes/openapi.c %D%/routes/processes.c %D%/routes/profile.c \
	%D%/routes/profile_begin.c %D%/routes/profile_diff.c %D%/routes/profile_end.c %D%/routes/profile_one.c %D%/routes/profiles.c \
	%D%/routes/query.c %D%/routes/server.c %D%/routes/setting.c %D%/routes/setting_put.c %D%/routes/skill_run.c %D%/routes/skills.c \
	%D%/routes/snapshot.c %D%/routes/source.c %D%/routes/stacks.c %D%/routes/table.c %D%/routes/tables.c %D%/routes/target.c \
	%D%/routes/targets_add.c %D%/routes/tasks.c %D%/routes/tensor.c %D%/routes/tensor_map.c %D%/routes/threads.c %D%/routes/tokens.c %D%/routes/tokens_end.c
# Those of another project of this name, in its shapes.
SERVE_ROUTES += %D%/upstream/upstream_callstack.c %D%/upstream/upstream_config.c %D%/upstream/upstream_eval.c \
	%D%/upstream/upstream_flamegraph.c %D%/upstream/upstream_flames.c %D%/upstream/upstream_folded.c %D%/upstream/upstream_nodes.c \
	%D%/upstream/upstream_overview.c %D%/upstream/upstream_processes.c %D%/upstream/upstream_query.c \
	%D%/upstream/upstream_query_dto.c %D%/upstream/upstream_ready.c
probing_serve_SOURCES = %D%/main.c %D%/command_line.c %D%/command_line.h %D%/options.def %D%/serve.h $(SERVE_ROUTES) %D%/routes/by_command.c %D%/routes/by_command.h \
	%D%/routes/job_roster.c %D%/routes/job_roster.h %D%/routes/job_shared.c \
	%D%/routes/profile_file.c %D%/routes/profile_file.h %D%/routes/rows.h \
	%D%/routes/evaluate.h
probing_serve_SOURCES += %D%/upstream/flames.c %D%/upstream/flames.h %D%/upstream/process.c %D%/upstream/rows.c %D%/upstream/target.c \
	%D%/upstream/upstream.h
probing_serve_SOURCES += %D%/doors/access.c %D%/doors/access.h %D%/doors/certificate.c %D%/doors/certificate.h %D%/doors/doorman.c %D%/doors/doors.h %D%/doors/first_bytes.c \
	%D%/doors/grants.c %D%/doors/guests.c %D%/doors/guests.h %D%/doors/life.c %D%/doors/life.h %D%/doors/places.c %D%/doors/tokens.c \
	%D%/doors/tokens.h
probing_serve_SOURCES += %D%/http/again.c %D%/http/again.h %D%/http/answer.c %D%/http/assets.c %D%/http/assets.h %D%/http/compress.c %D%/http/exchange.c %D%/http/fields.c \
	%D%/http/fields.h %D%/http/http.c %D%/http/http.h %D%/http/parts.h %D%/http/request.c %D%/http/request.h %D%/http/route.c %D%/http/route.h %D%/http/websocket.c %D%/http/words.h
probing_serve_SOURCES += %D%/text/command.c %D%/text/command.h %D%/text/looks.c %D%/text/looks.h %D%/text/text.c %D%/text/text.h \
	%D%/text/text_python.c %D%/text/text_python.h
probing_serve_SOURCES += %D%/work/agent.c %D%/work/agent.h %D%/work/debuggers.c %D%/work/debuggers.h
probing_serve_SOURCES += %D%/work/evaluations.c %D%/work/evaluations.h %D%/work/stacks_text.c %D%/work/stacks_text.h %D%/work/targets.c %D%/work/targets.h %D%/work/work.c \
	%D%/work/work.h
probing_serve_SOURCES += %D%/live/diagnose.c %D%/live/diagnose.h %D%/live/feeds.h %D%/live/history.c %D%/live/live.c \
	%D%/live/live.h %D%/live/messages.c %D%/live/runs.c %D%/live/runs.h %D%/live/seen.c %D%/live/seen.h %D%/live/watch.c %D%/live/watch.h
probing_serve_SOURCES += %D%/mcp/call.c %D%/mcp/diagnose.c %D%/mcp/eval.c %D%/mcp/hottest.c %D%/mcp/jobs.c %D%/mcp/mcp.c %D%/mcp/mcp.h %D%/mcp/processes.c \
	%D%/mcp/profile.c %D%/mcp/query.c %D%/mcp/stacks.c %D%/mcp/stdio.c %D%/mcp/tools.c
probing_serve_SOURCES += %D%/client/ask.c %D%/client/ask.h %D%/client/elsewhere.c %D%/client/elsewhere.h %D%/client/wire.c %D%/client/wire.h
# What the command line prints, by the same code.
probing_serve_SOURCES += cli/look/stacks.c cli/look/stacks.h cli/print/out.c cli/print/out.h cli/print/progress.c cli/fail.c
probing_serve_CFLAGS = $(AM_CFLAGS) $(WEBSOCKETS_CFLAGS)
probing_serve_LDADD = libprb.la $(JANSSON_LIBS) $(WEBSOCKETS_LIBS) $(ZLIB_LIBS) -ldl
BUILT_SOURCES += %D%/routes.inc %D%/assets.inc
CLEANFILES += %D%/routes.inc %D%/assets.inc
%D%/routes.inc: $(srcdir)/%D%/local.mk
	$(call write_list,ROUTE,$(SERVE_ROUTES))

# The page: TypeScript in page/src, compiled into page/js, which is in git, so that make needs no node (page/README.md).
PAGE_MODULES = main keys overview sayings rank_grid crash_list job_list hang verdict diagnosis names net editor watch looks live polled parts place format theme stacks frames ranks rank_tree job job_findings job_profile job_tables \
	moments source locals sql grid chart profile sampling flame flame_view canvas training training_charts training_data time_window turn_on usage memory \
	tensors tensor heat crashes tasks console debug settings
PAGE_FILES = $(PAGE_MODULES:%=%D%/page/js/%.js) %D%/page/page.css %D%/page/icon.svg %D%/page/vendor/preact.js %D%/page/vendor/hooks.js \
	%D%/page/vendor/uPlot.js %D%/page/vendor/uPlot.css
EXTRA_DIST += %D%/page/embed.sh %D%/page/index.html %D%/page/tsconfig.json %D%/page/README.md %D%/page/vendor/VENDOR %D%/page/vendor/LICENSE.preact \
	%D%/page/vendor/LICENSE.uPlot $(PAGE_FILES) %D%/page/src
EXTRA_DIST += %D%/pictures/overview.png %D%/pictures/stacks.png %D%/pictures/profile.png %D%/pictures/training.png %D%/pictures/memory.png %D%/pictures/tensors.png \
	%D%/pictures/crashes.png %D%/pictures/sql.png %D%/pictures/tasks.png %D%/pictures/console.png %D%/pictures/settings.png %D%/pictures/ranks.png %D%/pictures/job.png
%D%/assets.inc: $(PAGE_FILES) %D%/page/index.html %D%/page/embed.sh
	$(AM_V_GEN)cd $(srcdir) && sh %D%/page/embed.sh %D%/page/index.html $(PAGE_FILES) >$(abs_builddir)/$@-t && mv $(abs_builddir)/$@-t $(abs_builddir)/$@
