# The debugger in the target, included by python.mk.
probe_python_sources += %D%/core.h %D%/debug.h %D%/debug.c %D%/engine.c %D%/gate.c %D%/request.c \
	%D%/mechanisms.def %D%/methods.def %D%/monitoring.c
