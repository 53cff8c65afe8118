# How what is found is printed: colours, widths, messages.
probing_SOURCES += %D%/finding.c %D%/out.c %D%/out.h %D%/progress.c
