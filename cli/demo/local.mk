# A small job, and what the commands say of it.
probing_SOURCES += %D%/demo.h %D%/stage.c %D%/debugger.c
EXTRA_DIST += %D%/job.py
BUILT_SOURCES += %D%/job.inc
CLEANFILES += %D%/job.inc
%D%/job.inc: %D%/job.py
	$(AM_V_GEN)$(MKDIR_P) $(@D) && od -An -v -tu1 -w16 $(srcdir)/%D%/job.py | sed 's/ *\([0-9][0-9]*\)/\1,/g' >$@.new && mv $@.new $@
