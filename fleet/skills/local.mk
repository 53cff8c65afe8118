# Skills on the ranks of a job.
libprb_la_SOURCES += %D%/diagnose.c %D%/findings.c %D%/findings.h %D%/judge.c
