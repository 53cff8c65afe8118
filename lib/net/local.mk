# Sockets that clients connect to: addresses, listening, and who may come in.
libprb_la_SOURCES += %D%/access.c %D%/access.h %D%/address.c %D%/address.h %D%/owner.c %D%/owner.h %D%/peer.c %D%/peer.h %D%/token.c %D%/token.h
