# What a question is, and requests and replies as bytes.
libprb_la_SOURCES += %D%/kind.h %D%/message.h %D%/reply.c %D%/request.c
