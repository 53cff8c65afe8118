# One host: which ranks are here, and a child process that looks at each.
libprb_la_SOURCES += %D%/child.h %D%/child.c %D%/child_serve.c %D%/host.h %D%/host.c %D%/identity.c %D%/starter.h %D%/starter.c
