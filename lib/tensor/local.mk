libprb_la_SOURCES += %D%/array.h %D%/numpy.c %D%/torch.c
