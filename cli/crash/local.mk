# What processes wrote that crashed: list, show, prune.
probing_SOURCES += %D%/crash.h %D%/list.c %D%/show.c
