# The bus that the hosts of a job meet at, and a host's agent.
probing_SOURCES += %D%/cluster.h %D%/up.c
