# Injection into live processes.  `many` injects, `killer`
# kills the injector at each of its steps.  PROBING_INJECT_ROUNDS: injections of each hard case (60; long form 1000).
check_PROGRAMS += %D%/killer %D%/many
tests_inject_killer_LDADD =
tests_inject_many_LDADD = libprb.la
EXTRA_DIST += %D%/conftest.py
PYTESTS += %D%/test_eval.py
PYTESTS += %D%/test_inject.py
PYTESTS += %D%/test_probe.py
PYTESTS += %D%/test_hard.py %D%/test_hard_python.py %D%/test_hostile.py
