libprb_la_SOURCES += %D%/py.h %D%/code.h %D%/stack.h %D%/walk.h %D%/sampler.h %D%/sampler_slots.h %D%/sampler_threads.h %D%/locals.h %D%/gc.h \
	%D%/coroutine.h %D%/asyncio.h %D%/coroutine.c %D%/asyncio.c %D%/asyncio_list.c %D%/asyncio_waiters.c %D%/asyncio_offsets.c \
	%D%/py.c %D%/find.c %D%/code.c %D%/code_read.c %D%/code_read.h %D%/code_variables.c %D%/line.c %D%/walk.c %D%/sampler_slots.c %D%/sampler_threads.c %D%/sampler.c %D%/gil.h %D%/gil.c %D%/locals.c %D%/gc.c %D%/gc_stack.c
include lib/py/layout/local.mk
include lib/py/object/local.mk
