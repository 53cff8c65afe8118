# The program probing, started by the probe.
libprbprobe_la_SOURCES += %D%/outside.c %D%/outside.h
