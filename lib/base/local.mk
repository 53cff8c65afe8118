libprb_la_SOURCES += %D%/buf.c %D%/buf.h %D%/cleanup.h %D%/error.c %D%/error.h
