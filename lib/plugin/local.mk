# Tables of shared objects that others write, for the process that asks.
include_HEADERS += %D%/probing_plugin.h
libprb_la_SOURCES += %D%/probing_plugin.h %D%/host.c %D%/host.h %D%/plugin.c %D%/plugin.h %D%/safe.c
