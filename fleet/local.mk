# Many machines: part of libprobing.  keys.c opens libcrypto when it is first needed.
pkginclude_HEADERS += %D%/cluster.h
libprb_la_SOURCES += %D%/bus_file.c %D%/bus_file.h %D%/cluster.h %D%/keys.c %D%/keys.h %D%/up.c %D%/up.h %D%/up_files.c %D%/up_server.c
