# `make check`: C units (cmocka) here, programs under pytest in live, cli and the like.
# A pytest file is one entry of PYTESTS in its folder's local.mk; helpers beside it go to EXTRA_DIST.
# What a test sees: PROBING, the built command; SRCDIR, BUILDDIR.
AM_TESTS_ENVIRONMENT = \
	PROBING='$(abs_top_builddir)/.libs/probing'; export PROBING; \
	SRCDIR='$(abs_top_srcdir)'; export SRCDIR; BUILDDIR='$(abs_top_builddir)'; export BUILDDIR; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE;
PYTESTS =
TEST_EXTENSIONS = .py
PY_LOG_COMPILER = $(srcdir)/%D%/pytest.sh
EXTRA_DIST += %D%/conftest.py %D%/pytest.sh %D%/run %D%/newer-pythons.sh %D%/systems.sh %D%/SYSTEMS.md

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

# Two programs run at a time (tests/run), but those that measure speed only after the others, one by one.
ALONE = tests/live/test_torn.log tests/dap/test_leaving.log
tests/live/test_torn.log: | $(filter-out $(ALONE),$(TEST_LOGS))
tests/dap/test_leaving.log: | $(filter-out tests/dap/test_leaving.log,$(TEST_LOGS))
