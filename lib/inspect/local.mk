libprb_la_SOURCES += %D%/target.h %D%/reading.h %D%/open.c %D%/by_name.c %D%/job.c %D%/ranks.h %D%/processes.c %D%/threads.c \
	%D%/stacks.c %D%/rows.c %D%/native.c %D%/group.c %D%/snapshot.c %D%/snapshot.h %D%/secrets.h %D%/secrets.c %D%/parts.c \
	%D%/traceback.h %D%/traceback.c %D%/raised.c %D%/exception.c %D%/message.h %D%/message.c %D%/holder.h %D%/holder.c %D%/lock_holder.c \
	%D%/gil_watch.h %D%/gil_watch.c %D%/heap.h %D%/heap.c %D%/modules.c %D%/tensors.c \
	%D%/referrers.h %D%/referrers.c %D%/tally.h %D%/tally.c \
	%D%/crash.h %D%/crash.c %D%/crash_files.c %D%/async.h %D%/async.c %D%/async_rows.c %D%/async_stacks.c
