# Running Python code.
# $(probe_python_files), of all parts, go into the library as bytes.
probe_python_files = %D%/agent.py %D%/streams.py %D%/show.py %D%/frames.py %D%/statements.py %D%/complete.py
libprbprobe_la_SOURCES += %D%/python.h %D%/api.c %D%/api.h %D%/agent.c %D%/eval.c %D%/eval.h %D%/space.c %D%/space.h %D%/run.c \
	%D%/job.c %D%/job.h %D%/output.c %D%/wait.c %D%/switch_interval.c %D%/switch_interval.h %D%/inside.c %D%/watch.c %D%/request.c \
	%D%/sources.c %D%/sources.h %D%/bytecode.c %D%/bytecode.h inject/probe/python/bytecode_form.c inject/probe/python/bytecode_form.h

probe_python_bytes = %D%/sources.inc
BUILT_SOURCES += $(probe_python_bytes)
CLEANFILES += $(probe_python_bytes)
EXTRA_DIST += %D%/embed.sh $(probe_python_files)
$(probe_python_bytes): $(probe_python_files) %D%/embed.sh Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && sh $(srcdir)/%D%/embed.sh $(srcdir) $(probe_python_files) >$@.tmp && mv $@.tmp $@
