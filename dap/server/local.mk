# Who serves sessions: a listening server with the processes that it debugs, or standard input and output.
libprb_la_SOURCES += %D%/server.c %D%/server.h %D%/debuggees.c %D%/stdio.c
