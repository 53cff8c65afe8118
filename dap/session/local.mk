# A session: its life and threads, one request after the other, its events, and what it watches.
libprb_la_SOURCES += %D%/session.c %D%/session.h %D%/threads.c %D%/reader.c %D%/queue.c %D%/queue.h \
	%D%/dispatch.c %D%/request.h %D%/arguments.c %D%/ask.c %D%/events.c %D%/target_events.c %D%/progress.c \
	%D%/thread_map.c %D%/thread_map.h %D%/watch.c %D%/watch.h %D%/children.c %D%/births.c %D%/births.h %D%/countdown.c %D%/countdown.h
