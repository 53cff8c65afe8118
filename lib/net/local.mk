# Sockets that clients connect to: addresses, listening, and who may come in.
libprb_la_SOURCES += %D%/peer.c %D%/peer.h
