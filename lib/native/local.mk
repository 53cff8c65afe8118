libprb_la_SOURCES += %D%/native.h
