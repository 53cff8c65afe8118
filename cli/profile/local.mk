# Sampling: record a profile, compare two.
probing_SOURCES += %D%/ranks.c %D%/ranks.h
