# Debug Adapter Protocol servers, and a stop's picture without one.
probing_SOURCES += %D%/dap.c %D%/debug.c %D%/dump.c %D%/dump.h %D%/serve.c %D%/serve.h
