# The back end that only looks: a live process without the probe, cores, snapshots.
libprb_la_SOURCES += %D%/readonly.c %D%/readonly.h %D%/stack.c %D%/values.c %D%/path.c %D%/source.c
