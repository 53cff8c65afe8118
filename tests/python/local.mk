# The pip package: built from this tree, installed without a network, under every CPython found.
check_LTLIBRARIES += %D%/fakeprobe.la
tests_python_fakeprobe_la_SOURCES = %D%/fakeprobe.c
tests_python_fakeprobe_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
check_DATA += $(PYTHON_NATIVE)
PYTESTS += %D%/test_notebook.py %D%/test_jupyter.py
PYTESTS += %D%/test_rules.py %D%/test_startup.py %D%/test_unharmed_start.py %D%/test_package.py %D%/test_other.py %D%/test_real.py %D%/test_debug.py
EXTRA_DIST += %D%/conftest.py %D%/package.py %D%/starts.py %D%/uses.py %D%/lives.py
