# What a session debugs: the interface of all back ends, and stacks as both give them.
libprb_la_SOURCES += %D%/backend.h %D%/frames.c %D%/frames.h

include dap/backend/live/local.mk
include dap/backend/readonly/local.mk
