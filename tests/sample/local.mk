# Profiles: what they say, their formats as other readers read them, and what goes wrong on the way.
PYTESTS += %D%/test_profile.py %D%/test_async.py %D%/test_formats.py %D%/test_page.py %D%/test_bad_input.py %D%/test_program.py %D%/test_source.py \
	%D%/test_hostile.py
EXTRA_DIST += %D%/conftest.py %D%/profiles.py
# Functions that wait as CUDA's and NCCL's do.
check_LTLIBRARIES += %D%/spins.la
tests_sample_spins_la_SOURCES = %D%/spins.c
tests_sample_spins_la_CFLAGS = -O1 -fno-optimize-sibling-calls
tests_sample_spins_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere -Wl,-z,noexecstack
