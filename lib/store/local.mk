libprb_la_SOURCES += %D%/chunk.c %D%/chunk.h %D%/column.c %D%/column.h %D%/pack.c %D%/pack.h
