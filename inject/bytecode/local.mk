# Byte code of the probe's Python, made outside by the target's own interpreter and kept.
libprb_la_SOURCES += %D%/bytecode.c %D%/bytecode.h %D%/cache.c %D%/cache.h %D%/confined.c %D%/confined.h %D%/run.c %D%/run.h
