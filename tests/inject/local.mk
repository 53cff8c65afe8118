# Injection into live processes.  Targets in C report through shared memory (targets/report.h); `many` injects, `killer`
# kills the injector at each of its steps.  PROBING_INJECT_ROUNDS: injections of each hard case (60; long form 1000).
HARD_TARGETS = %D%/targets/storm %D%/targets/canary %D%/targets/calls %D%/targets/forks %D%/targets/churn \
	%D%/targets/guarded %D%/targets/embed %D%/targets/clobber %D%/targets/liar %D%/targets/flicker %D%/killer
check_PROGRAMS += $(HARD_TARGETS) %D%/many
tests_inject_targets_storm_LDADD =
tests_inject_targets_canary_LDADD =
tests_inject_targets_calls_LDADD =
tests_inject_targets_forks_LDADD =
tests_inject_targets_churn_LDADD =
tests_inject_targets_guarded_LDADD =
tests_inject_targets_embed_LDADD = -ldl
tests_inject_targets_clobber_LDADD =
tests_inject_targets_flicker_LDADD =
tests_inject_targets_liar_LDADD =
tests_inject_targets_liar_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
tests_inject_killer_LDADD =
tests_inject_many_LDADD = libprb.la
# A module of libtool's, which is made though nothing installs it.
check_LTLIBRARIES += %D%/targets/counted.la
tests_inject_targets_counted_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere -Wl,-z,noexecstack
EXTRA_DIST += %D%/targets/report.h %D%/hard.py %D%/conftest.py %D%/many.c
PYTESTS += %D%/test_eval.py
PYTESTS += %D%/test_inject.py
PYTESTS += %D%/test_probe.py
PYTESTS += %D%/test_hard.py %D%/test_hard_python.py %D%/test_hostile.py
