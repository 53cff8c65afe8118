# Running Python code: $(probe_python_sources) is built into libprobe.la by ../local.mk.
# NAME.py goes into the library as bytes, NAME.inc.
probe_python_parts = %D%/agent %D%/streams %D%/show %D%/frames %D%/statements %D%/complete %D%/crash
probe_python_sources = %D%/python.h %D%/api.c %D%/api.h %D%/agent.c %D%/eval.c %D%/eval.h %D%/run.c %D%/job.c %D%/job.h %D%/output.c %D%/wait.c \
	%D%/switch_interval.c %D%/switch_interval.h %D%/inside.c %D%/watch.c %D%/request.c %D%/sources.c %D%/sources.h %D%/bytecode.c %D%/bytecode.h \
	inject/probe/bytecode_form.c inject/probe/bytecode_form.h

probe_python_bytes = $(probe_python_parts:=.inc)
BUILT_SOURCES += $(probe_python_bytes)
CLEANFILES += $(probe_python_bytes)
EXTRA_DIST += $(probe_python_parts:=.py)
$(probe_python_bytes): Makefile
%D%/%.inc: %D%/%.py
	$(AM_V_GEN)$(MKDIR_P) %D% && { od -An -v -tu1 -w16 $< | sed 's/ *\([0-9][0-9]*\)/\1,/g'; echo 0; } >$@.tmp && mv $@.tmp $@
