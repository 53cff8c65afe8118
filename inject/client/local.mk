# Talking to a probe: its socket, requests, debug sessions.
libprb_la_SOURCES += %D%/control.c %D%/ask.h %D%/find.c %D%/find.h %D%/gil.c %D%/config.c %D%/requests.c %D%/recorder.c %D%/debug.c %D%/debug_link.c %D%/debug_link.h
