# Debug Adapter Protocol servers, and a stop's picture without one.
probing_SOURCES += %D%/dump.c %D%/dump.h %D%/serve.c %D%/serve.h
