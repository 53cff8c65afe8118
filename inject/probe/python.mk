# Running Python code: included by local.mk, which builds $(probe_python_sources) into libprobe.la.
# python_NAME.py goes into the library as bytes, python_NAME.inc.
probe_python_parts = %D%/python_agent %D%/python_streams %D%/python_show %D%/python_frames \
	%D%/python_statements %D%/python_complete %D%/python_crash
probe_python_sources = %D%/python.h %D%/python_api.c %D%/python_api.h %D%/python_call.c %D%/python_run.c %D%/python_job.c \
	%D%/python_job.h %D%/python_output.c %D%/python_detach.c %D%/python_watch.c %D%/python_request.c \
	%D%/python_sources.c %D%/python_sources.h %D%/python_bytecode.c %D%/python_bytecode.h \
	%D%/bytecode_form.c %D%/bytecode_form.h

probe_python_bytes = $(probe_python_parts:=.inc)
BUILT_SOURCES += $(probe_python_bytes)
CLEANFILES += $(probe_python_bytes)
EXTRA_DIST += $(probe_python_parts:=.py)
$(probe_python_bytes): Makefile
%D%/%.inc: %D%/%.py
	$(AM_V_GEN)$(MKDIR_P) %D% && { od -An -v -tu1 -w16 $< | sed 's/ *\([0-9][0-9]*\)/\1,/g'; echo 0; } >$@.tmp && mv $@.tmp $@
include %D%/debug/parts.mk
include %D%/debug/local.mk
