# The Debug Adapter Protocol server: part of libprobing.  To add a request: request.h.
pkginclude_HEADERS += %D%/dap.h
libprb_la_SOURCES += %D%/dap.h %D%/backend.h %D%/request.h %D%/requests.def
libprb_la_SOURCES += %D%/wire.c %D%/wire.h %D%/outbox.c %D%/outbox.h %D%/session.c %D%/session.h %D%/events.c %D%/dispatch.c \
	%D%/paths.c %D%/paths.h %D%/places.c %D%/places.h %D%/sources.c %D%/sources.h %D%/columns.c %D%/columns.h %D%/alone.c %D%/live.c %D%/peer.c %D%/peer.h %D%/server.c %D%/server.h %D%/held.c %D%/listen.c
# One file a concern.
libprb_la_SOURCES += %D%/initialize.c %D%/attach.c %D%/attach.h %D%/launch.c %D%/watch.c %D%/watch.h %D%/children.c %D%/progress.c %D%/program.c %D%/program.h %D%/program_command.c %D%/program_command.h %D%/ending.c %D%/ending.h %D%/countdown.c %D%/countdown.h \
	%D%/threads.c %D%/stack.c %D%/variables.c %D%/variables.h %D%/breakpoints.c %D%/exceptions.c %D%/running.c \
	%D%/modules.c %D%/memory.c %D%/debugpy.c
# Looking without the probe: live, cores, snapshots; and native frames for those who have it.
libprb_la_SOURCES += %D%/native_frames.h %D%/native_frames.c %D%/look.h %D%/look.c %D%/look_stack.c %D%/look_values.c \
	%D%/look_path.c %D%/look_source.c
