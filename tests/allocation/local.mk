# Sampled allocations.
PYTESTS += %D%/test_python.py
EXTRA_DIST += %D%/conftest.py %D%/sampling.py
PYTESTS += %D%/test_native.py %D%/test_profile.py %D%/test_storms.py
# A library whose calls of an allocator are counted.
check_LTLIBRARIES += %D%/native.la
tests_allocation_native_la_SOURCES = %D%/native.c
tests_allocation_native_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_allocation_native_la_CFLAGS = $(AM_CFLAGS) -fno-optimize-sibling-calls
tests_allocation_native_la_LIBADD =
