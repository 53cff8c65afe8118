# CUDA's runtime, for the parts that ask a device something.
libprbprobe_la_SOURCES += %D%/cuda.h %D%/cuda.c %D%/allocator.h %D%/allocator.c
