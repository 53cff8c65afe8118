# `probing cluster up`: the server's files, and the process that keeps it running.
libprb_la_SOURCES += %D%/files.c %D%/server.c %D%/up.h %D%/up.c
