libprb_la_SOURCES += %D%/tensor.h %D%/kernel.h %D%/kernel_body.h %D%/numpy.c %D%/torch.c %D%/torch_places.c %D%/torch_places.h %D%/dtype.c %D%/element.c %D%/scalar.c \
	%D%/torch_constant.c %D%/slice.c %D%/blocks.c %D%/values.c %D%/statistics.c %D%/kernel.c
