# The debugger in the target, included by ../local.mk.
probe_python_sources += %D%/core.h %D%/debug.h %D%/debug.c %D%/engine.c %D%/gate.c %D%/hurry.c %D%/owed.c %D%/request.c \
	%D%/mechanisms.def %D%/methods.def %D%/monitoring.c %D%/monitoring.h %D%/monitoring_hooks.c \
	%D%/evaluation.h %D%/evaluation.c %D%/evaluation_find.c %D%/evaluation_code.c %D%/evaluation_frames.c %D%/evaluation_kept.c \
	%D%/evaluation_thread.c %D%/evaluation_hook.c lib/py/layout/layout.c
