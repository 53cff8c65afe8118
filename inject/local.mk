# Getting in: part of libprobing; its headers are installed as probing/inject.h and probing/control.h.
# inject/probe is the library that goes into the target.
libprb_la_SOURCES += %D%/library.c %D%/ensure.c %D%/torch.c
pkginclude_HEADERS += %D%/inject.h %D%/control.h %D%/debug.h

include inject/enter/local.mk
include inject/client/local.mk
include inject/bytecode/local.mk
include inject/nccl/local.mk
include inject/probe/local.mk
