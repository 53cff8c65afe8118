# The store: collecting what is recorded.
probing_SOURCES += %D%/start.c %D%/start.h
