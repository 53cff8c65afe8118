# The asker: which job is meant, the ways to its hosts, and in which state each rank is afterwards.
libprb_la_SOURCES += %D%/address.h %D%/address.c %D%/debug.c %D%/local.c %D%/nats.c %D%/root.c %D%/sql.c %D%/transport.h
