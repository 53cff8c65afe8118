# How what is found is printed: colours, widths, messages.
probing_SOURCES += %D%/out.c %D%/out.h %D%/progress.c
