# A host's agent on the bus.
libprb_la_SOURCES += %D%/agent.h %D%/agent.c %D%/attach.c %D%/crashes.c %D%/hosts.c %D%/lane.h %D%/lane.c %D%/lend.h %D%/lend.c %D%/log.c %D%/metrics.c %D%/told.h %D%/told.c %D%/within.c %D%/work.c
