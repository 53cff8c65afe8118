# The bus that the hosts of a job meet at, and a host's agent.
probing_SOURCES += %D%/attach.c %D%/cluster.h %D%/hosts.c %D%/record.c %D%/server.c %D%/up.c
