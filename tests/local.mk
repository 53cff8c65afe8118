# `make check`: C units (cmocka) here, programs under pytest in live, cli and the like.
# A pytest file is one entry of PYTESTS in its folder's local.mk; helpers beside it go to EXTRA_DIST.
# What a test sees: PROBING, the built command; SRCDIR, BUILDDIR.
AM_TESTS_ENVIRONMENT = \
	PROBING='$(abs_top_builddir)/.libs/probing'; export PROBING; \
	SRCDIR='$(abs_top_srcdir)'; export SRCDIR; BUILDDIR='$(abs_top_builddir)'; export BUILDDIR; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;
PYTESTS =
TEST_EXTENSIONS = .py
LOG_COMPILER = timeout --kill-after=30 900
PY_LOG_COMPILER = $(srcdir)/%D%/pytest.sh
EXTRA_DIST += %D%/conftest.py %D%/pytest.sh %D%/run %D%/newer-pythons.sh %D%/systems.sh %D%/aarch64.sh %D%/SYSTEMS.md

include tests/support/local.mk
include tests/lint/local.mk
include tests/unit/local.mk
include tests/cli/local.mk
include tests/targets/local.mk
include tests/layout/local.mk
include tests/live/local.mk
include tests/python/local.mk
include tests/fuzz/local.mk
include tests/inject/local.mk
include tests/crash/local.mk
include tests/dap/local.mk
include tests/gdb/local.mk
include tests/sample/local.mk
include tests/host/local.mk
include tests/allocation/local.mk
include tests/store/local.mk
include tests/training/local.mk
include tests/gpu/local.mk
include tests/export/local.mk
include tests/comm/local.mk
include tests/fleet/local.mk
include tests/packaging/local.mk
include tests/security/local.mk
include tests/skills/local.mk
include tests/serve/local.mk
include tests/page/local.mk
include tests/bench/local.mk
include tests/editors/local.mk
TESTS += $(PYTESTS)
EXTRA_DIST += $(PYTESTS)

# tests/run begins these lists beside each other: programs that work, two at a time and the longest first, and one by one those
# that mostly wait, for samples, intervals and time-outs.  What measures speed runs after all others, alone.
WAITING_TESTS = \
	%D%/live/test_tables.py %D%/training/test_slots.py %D%/page/test_overview.py %D%/skills/test_skills.py %D%/page/test_pictures.py \
	%D%/comm/test_metrics.py %D%/training/test_variables.py %D%/page/test_jobs.py %D%/page/test_ranks.py %D%/serve/test_skills.py \
	%D%/store/test_machine.py %D%/cli/test_ranks.py %D%/fleet/test_nemesis.py %D%/serve/test_live.py %D%/sample/test_formats.py \
	%D%/serve/test_history.py %D%/store/test_failures.py %D%/serve/test_own.py %D%/fleet/test_agents.py %D%/fleet/test_bus_commands.py %D%/serve/test_protocol.py \
	%D%/serve/test_metrics.py %D%/training/test_growth.py %D%/fleet/test_debug.py %D%/comm/test_recorder.py
LONG_TESTS = \
	%D%/training/test_watch.py %D%/training/test_trace.py %D%/sample/test_profile.py %D%/editors/test_vscode.py %D%/training/test_phases.py \
	%D%/inject/test_eval.py %D%/live/test_stacks.py %D%/python/test_startup.py %D%/python/test_unharmed_start.py %D%/crash/test_crash.py %D%/cli/test_pages.py \
	%D%/dap/test_evaluation.py %D%/dap/test_evaluating.py %D%/inject/test_hard.py %D%/dap/test_readonly.py %D%/dap/test_core.py
ALONE_TESTS = %D%/live/test_torn.py %D%/dap/test_leaving.py
WORKING_TESTS = $(LONG_TESTS) $(UNIT_TESTS) $(FUZZ_TARGETS) \
	$(filter-out $(WAITING_TESTS) $(LONG_TESTS) $(ALONE_TESTS),$(PYTESTS))

# The same of a plain `make check`.
%D%/live/test_torn.log: | $(filter-out $(ALONE_TESTS:.py=.log),$(TEST_LOGS))
%D%/dap/test_leaving.log: | $(filter-out %D%/dap/test_leaving.log,$(TEST_LOGS))
