# What torch.distributed itself keeps of its collectives: a part.
libprbprobe_la_SOURCES += %D%/recorder.c %D%/nccl.c %D%/comm.h
