# Getting in: part of libprobing; its headers are installed as probing/inject.h and probing/control.h.
# inject/probe is the library that goes into the target.
# The stubs' bytes are made by stub/mk-stubs.sh, by hand, as the sources change.
pkginclude_HEADERS += %D%/inject.h %D%/control.h %D%/debug.h
libprb_la_SOURCES += %D%/arch.c %D%/arch.h %D%/arch_x86_64.c %D%/arch_aarch64.c
libprb_la_SOURCES += %D%/method.h %D%/inject.c %D%/preflight.c %D%/seccomp.c %D%/seccomp_filter.c %D%/places.c %D%/choose.c %D%/stack.c %D%/borrow.c %D%/deliver.c %D%/carry.c %D%/remote_exec.c
libprb_la_SOURCES += %D%/stub.h %D%/stub/x86_64.h %D%/stub/aarch64.h
EXTRA_DIST += %D%/stub/mk-stubs.sh %D%/stub/x86_64.S %D%/stub/aarch64.S
libprb_la_SOURCES += %D%/control.c %D%/control_ask.h %D%/control_find.c %D%/control_find.h %D%/control_requests.c %D%/debug.c %D%/debug_link.c %D%/debug_link.h

include inject/bytecode/local.mk
include inject/probe/local.mk
