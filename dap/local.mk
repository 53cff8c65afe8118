# The Debug Adapter Protocol server: part of libprobing.  To add a request: session/request.h.
pkginclude_HEADERS += %D%/dap.h
libprb_la_SOURCES += %D%/dap.h

include dap/client/local.mk
include dap/session/local.mk
include dap/requests/local.mk
include dap/attach/local.mk
include dap/backend/local.mk
include dap/server/local.mk
