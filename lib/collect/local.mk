libprb_la_SOURCES += %D%/collect.c %D%/parts.h %D%/job.c %D%/processes.c %D%/rings.c
