# The back end of a live process with the probe; native frames between the agent's.
libprb_la_SOURCES += %D%/live.c %D%/native_frames.c %D%/native_frames.h
