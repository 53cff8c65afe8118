# The debugger as a client has it: client.py speaks the protocol and judges each message by protocol.json (which
# make_protocol.py makes of the published schema); debuggee.py is tests/targets/debugged.py, seen from here.
# To add a test of a request: in the file of its concern, with the fixture `attached`.
PYTESTS += %D%/test_protocol.py %D%/test_wire.py %D%/test_session.py %D%/test_breakpoints.py %D%/test_running.py \
	%D%/test_variables.py %D%/test_evaluating.py %D%/test_launching.py %D%/test_matrix.py %D%/test_leaving.py %D%/test_breakpoint_hook.py %D%/test_testsupport.py \
	%D%/test_signals.py %D%/test_transports.py %D%/test_training.py %D%/test_libraries.py %D%/test_ranks.py %D%/test_relay.py %D%/test_hostile.py %D%/test_columns.py %D%/test_postmortem.py %D%/test_fuzz.py
EXTRA_DIST += %D%/client.py %D%/conftest.py %D%/debuggee.py %D%/server.py %D%/training.py %D%/make_protocol.py %D%/protocol.py %D%/protocol.json \
	%D%/protocol.LICENSE %D%/testsupport.js
PYTESTS += %D%/test_core.py %D%/test_births.py %D%/test_every.py %D%/test_hidden.py %D%/test_rules.py
# The in-target Python alone, on every CPython found: agent/cases.py with an engine of sys.settrace.
PYTESTS += %D%/test_agent.py %D%/test_agent_live.py
EXTRA_DIST += %D%/agent/cases.py %D%/agent/fake.py %D%/agent/program.py
# The look back end without a server: live, core, snapshot.
check_PROGRAMS += %D%/readonly_call
tests_dap_readonly_call_LDADD = libprb.la $(JANSSON_LIBS)
PYTESTS += %D%/test_readonly.py %D%/test_native_frames.py %D%/test_folding.py
# The mechanism for 3.6 to 3.11 by itself: a module that each interpreter loads.
check_LTLIBRARIES += %D%/evaluation.la
tests_dap_evaluation_la_SOURCES = %D%/evaluation.c inject/probe/debug/evaluation/evaluation.c inject/probe/debug/evaluation/find.c \
	inject/probe/debug/evaluation/code.c inject/probe/debug/evaluation/frames.c inject/probe/debug/evaluation/thread_table.c \
	inject/probe/debug/evaluation/thread.c inject/probe/debug/evaluation/hook.c inject/probe/python/api.c \
	lib/base/error.c lib/py/layout/layout.c
tests_dap_evaluation_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_dap_evaluation_la_LIBADD = -lpthread -ldl
PYTESTS += %D%/test_evaluation.py
EXTRA_DIST += %D%/evaluation/common.py %D%/evaluation/run.py %D%/evaluation/lines.py %D%/evaluation/exceptions.py \
	%D%/evaluation/stopping.py %D%/evaluation/others.py %D%/evaluation/leaving.py
# Byte code for the target, made beside it, and its cache.
check_PROGRAMS += %D%/bytecode_call
tests_dap_bytecode_call_LDADD = libprb.la
PYTESTS += %D%/test_bytecode.py
