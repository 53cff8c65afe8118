# The asker: which job is meant, the ways to its hosts, and in which state each rank is afterwards.
libprb_la_SOURCES += %D%/address.h %D%/address.c %D%/crashes.c %D%/debug.c %D%/local.c %D%/nats.c %D%/nats.h %D%/nats_ask.c %D%/nats_cluster.c %D%/nats_find.c %D%/nats_hosts.c %D%/root.c %D%/sql.c %D%/tables.c %D%/tables.h %D%/transport.h
