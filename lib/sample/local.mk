libprb_la_SOURCES += %D%/activity.h %D%/activity.c %D%/async.c %D%/children.h %D%/children.c \
	%D%/count.c %D%/idle.c %D%/name.c %D%/native.c %D%/process.h %D%/process.c %D%/profiler.c \
	%D%/waits.def
