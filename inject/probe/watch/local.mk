# Watched variables: a part.
libprbprobe_la_SOURCES += %D%/watch.h %D%/part.c %D%/facts.c %D%/follow.c %D%/value.c %D%/locals.c %D%/list.c %D%/moments.c %D%/returns.c %D%/caller.c %D%/rate.c %D%/device.c \
	%D%/evaluator.c lib/training/variable_rows.h lib/tensor/torch_places.c lib/tensor/torch_places.h
