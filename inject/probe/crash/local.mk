# The crash handler: a part.
libprbprobe_la_SOURCES += %D%/crash.h %D%/arm.c %D%/handler.c %D%/memory.c %D%/note.c %D%/part.c %D%/python.c \
	%D%/raw_text.c %D%/stack.c %D%/write.c
probe_python_files += %D%/crash.py
