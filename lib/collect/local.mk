libprb_la_SOURCES += %D%/collect.c %D%/containers.c %D%/parts.h %D%/gil.c %D%/host.c %D%/job.c %D%/processes.c %D%/rings.c %D%/rules.c %D%/settings.c %D%/stacks.c %D%/thread.c %D%/thread.h
