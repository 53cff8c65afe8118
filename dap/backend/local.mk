# What a session is about: the interface, the live back end (with the probe), and native frames.
libprb_la_SOURCES += %D%/backend.h %D%/live.c %D%/native_frames.c %D%/native_frames.h
