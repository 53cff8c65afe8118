# The conversation with a target: the lines typed, and the commands that start with %.
probing_SOURCES += %D%/commands.c %D%/line.c %D%/line.h %D%/repl.h
