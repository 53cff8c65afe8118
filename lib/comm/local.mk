libprb_la_SOURCES += %D%/clocks.c %D%/clocks.h
