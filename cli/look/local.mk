# Looking at a target from outside: processes, stacks, tasks, SQL, snapshots.
probing_SOURCES += %D%/backtrace.c %D%/inspect.c %D%/list.c %D%/query.c %D%/snapshot.c %D%/stacks.c %D%/stacks.h %D%/tables.c %D%/tasks.c %D%/watch.c %D%/watch.h
