# A server of its own for the process: a part.
libprbprobe_la_SOURCES += %D%/part.c %D%/start.c %D%/serve.h %D%/address.c %D%/address.h
