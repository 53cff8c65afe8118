# Sampling: record a profile, compare two.
probing_SOURCES += %D%/memory.c %D%/memory.h %D%/ranks.c %D%/ranks.h
