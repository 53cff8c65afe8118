# Recording what PyTorch does: a part.
libprbprobe_la_SOURCES += %D%/torch.h %D%/part.c %D%/keep.c %D%/request.c %D%/process.c %D%/slots.c %D%/backward.c %D%/method.c %D%/method.h %D%/wait.c %D%/optimizers.c %D%/observer.c %D%/step.c %D%/record.c %D%/label.c \
	%D%/thread.c %D%/cost.c %D%/control.c %D%/check.c %D%/ending.c %D%/ending_text.c %D%/ending.h %D%/device.c %D%/hooks.c %D%/hooks.h %D%/frames.c %D%/frames.h %D%/spec.c %D%/spec.h %D%/wanted.c %D%/wanted.h lib/training/trace.h
