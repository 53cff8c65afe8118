# Sampled allocations: a part.
libprbprobe_la_SOURCES += %D%/memory.h %D%/part.c %D%/record.c %D%/frames.c %D%/python_hooks.c %D%/random.c \
	%D%/libraries.c %D%/libraries.h %D%/native_hooks.c
