# Does a job hang: what is seen of each rank, and the verdict.
libprb_la_SOURCES += %D%/evidence.h %D%/evidence.c %D%/json.c %D%/kinds.def %D%/recorder.c %D%/signs.c %D%/verdict.c %D%/waits.def %D%/words.c \
	%D%/wavefront.h %D%/wavefront.c
