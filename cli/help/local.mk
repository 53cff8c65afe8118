# What the program says of itself: help, man page, completions, version.
probing_SOURCES += %D%/help.h %D%/json.c %D%/man.c %D%/man.h %D%/usage.c
