libprb_la_SOURCES += %D%/target.h %D%/version.c
