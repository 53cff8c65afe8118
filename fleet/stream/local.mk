# Bytes of connections as messages of the bus: a debugger here, a rank elsewhere.
libprb_la_SOURCES += %D%/debug.h %D%/packet.h %D%/packet.c %D%/pump.h %D%/pump.c
