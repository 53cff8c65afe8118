# Real crashes (crasher.py, faults.c) of every CPython found, and their dumps.
check_LTLIBRARIES += %D%/faults.la
tests_crash_faults_la_SOURCES = %D%/faults.c
tests_crash_faults_la_CFLAGS = -O0 -g -fno-builtin
tests_crash_faults_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere -Wl,-z,noexecstack
tests_crash_faults_la_LIBADD = -lpthread
EXTRA_DIST += %D%/conftest.py %D%/crasher.py %D%/housed.py
PYTESTS += %D%/test_crash.py %D%/test_hostile.py
