# The back end that only reads: a live process without the probe, cores, snapshots.
libprb_la_SOURCES += %D%/readonly.c %D%/readonly.h %D%/view.c %D%/stack.c %D%/values.c %D%/evaluate.c %D%/source.c
