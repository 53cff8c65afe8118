# What is installed for other programs, and how it is found.
probing_SOURCES += %D%/share.c %D%/share.h
BUILT_SOURCES += %D%/folder.inc
CLEANFILES += %D%/folder.inc
%D%/folder.inc: Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && echo '"$(pkgdatadir)"' >$@
