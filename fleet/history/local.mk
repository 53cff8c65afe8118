# History of all hosts in one place: agents publish rows to a stream of the server, a record takes them.
libprb_la_SOURCES += %D%/history.h %D%/publish.c %D%/record.c %D%/stream.c
