# What a session is about: the interface of all back ends.
libprb_la_SOURCES += %D%/backend.h

include dap/backend/live/local.mk
include dap/backend/readonly/local.mk
