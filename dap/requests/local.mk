# What clients ask, one file a concern.
libprb_la_SOURCES += %D%/initialize.c %D%/threads.c %D%/stack.c %D%/stack.h %D%/variables.c %D%/variables.h \
	%D%/breakpoints.c %D%/exceptions.c %D%/running.c %D%/modules.c %D%/memory.c %D%/debugpy.c
