# A session: its life and threads, one request after the other, its events, and what it watches meanwhile.
libprb_la_SOURCES += %D%/session.c %D%/session.h %D%/reader.c %D%/lanes.c %D%/lanes.h %D%/dispatch.c \
	%D%/request.h %D%/requests.def %D%/arguments.c %D%/events.c %D%/progress.c %D%/places.c %D%/places.h \
	%D%/watch.c %D%/watch.h %D%/children.c %D%/countdown.c %D%/countdown.h
