# Many machines: part of libprobing.  keys.c opens libcrypto when it is first needed.
libprb_la_SOURCES += %D%/bus_file.c %D%/bus_file.h %D%/keys.c %D%/keys.h
