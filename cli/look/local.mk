# Looking at a target from outside: processes, stacks, tasks, SQL, snapshots.
probing_SOURCES += %D%/stacks.c %D%/stacks.h %D%/watch.c %D%/watch.h %D%/many.c %D%/many.h %D%/database.c %D%/database.h
