# How what is found is printed: colour, escapes, JSON, columns.
probing_SOURCES += %D%/grid.c %D%/grid.h %D%/out.c %D%/out.h
