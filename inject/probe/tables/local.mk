# Tables that code in the target writes: a part.
libprbprobe_la_SOURCES += %D%/about.c %D%/about.h %D%/tables.c %D%/tables.h
