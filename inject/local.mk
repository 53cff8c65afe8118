# Getting in: part of libprobing; its headers are installed as probing/inject.h and probing/control.h.
# The stubs' bytes are made by stub/mk-stubs.sh, by hand, as the sources change.
AM_CPPFLAGS += -I$(top_srcdir)
libprb_la_SOURCES += %D%/arch.c %D%/arch.h %D%/arch_x86_64.c
libprb_la_SOURCES += %D%/method.h %D%/inject.c %D%/preflight.c %D%/places.c %D%/choose.c %D%/borrow.c %D%/deliver.c
libprb_la_SOURCES += %D%/stub.h %D%/stub/x86_64.h
EXTRA_DIST += %D%/stub/mk-stubs.sh %D%/stub/x86_64.S
injectincludedir = $(includedir)/probing
injectinclude_HEADERS = %D%/inject.h %D%/control.h
