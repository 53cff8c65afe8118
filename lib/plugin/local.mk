# Tables of shared objects that others write, for the process that asks.
include_HEADERS += %D%/probing_plugin.h
libprb_la_SOURCES += %D%/probing_plugin.h %D%/host.c %D%/host.h %D%/plugin.c %D%/plugin.h %D%/safe.c
# Where they are installed: only plugin.c sees it, so that another prefix leaves all other objects as they are.
plugindir = $(pkglibdir)/plugins
BUILT_SOURCES += %D%/folder.inc
CLEANFILES += %D%/folder.inc
%D%/folder.inc: Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && echo '"$(plugindir)"' >$@
