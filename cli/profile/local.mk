# Sampling: record a profile, compare two.
probing_SOURCES += %D%/diff.c %D%/profile.c %D%/ranks.c %D%/ranks.h
