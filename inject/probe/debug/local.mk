# The debugger in the target: a part.
libprbprobe_la_SOURCES += %D%/session.h %D%/debug.h %D%/session.c %D%/engine.c %D%/condition.c %D%/gate.c %D%/pending_exception.c %D%/birth.h %D%/birth.c %D%/request.c \
	%D%/mechanisms.def %D%/methods.def %D%/monitoring/monitoring.c %D%/monitoring/monitoring.h %D%/monitoring/hooks.c \
	%D%/evaluation/evaluation.h %D%/evaluation/evaluation.c %D%/evaluation/find.c %D%/evaluation/code.c %D%/evaluation/frames.c %D%/evaluation/thread_table.c \
	%D%/evaluation/thread.c %D%/evaluation/hook.c lib/py/layout/layout.c
