# Who serves sessions: a listening server and the processes it keeps, or standard input and output.
libprb_la_SOURCES += %D%/server.c %D%/server.h %D%/debuggees.c %D%/stdio.c
