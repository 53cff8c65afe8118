libprb_la_SOURCES += %D%/async.c %D%/count.c %D%/doing.h %D%/doing.c %D%/family.h %D%/family.c \
	%D%/member.h %D%/member.c %D%/name.c %D%/native.c %D%/profiler.c \
	%D%/rest.c %D%/waits.def
