# The client's side: framing, the queue to it, and its paths, sources and columns as against the target's.
libprb_la_SOURCES += %D%/wire.c %D%/wire.h %D%/outbox.c %D%/outbox.h %D%/paths.c %D%/paths.h \
	%D%/sources.c %D%/sources.h %D%/columns.c %D%/columns.h
