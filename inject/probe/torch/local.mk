# What is recorded of PyTorch.
libprbprobe_la_SOURCES += %D%/spec.c %D%/spec.h %D%/wanted.c %D%/wanted.h
