# Sampling: record a profile, compare two.
probing_SOURCES += %D%/kept.c %D%/kept.h %D%/memory.c %D%/memory.h %D%/ranks.c %D%/ranks.h
