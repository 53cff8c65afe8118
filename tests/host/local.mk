# What the machine says of a job, and stand-ins for NVIDIA's library.
PYTESTS += %D%/test_host.py %D%/test_gpu.py
check_LTLIBRARIES += %D%/nvml.la %D%/nvml_old.la
tests_host_nvml_la_SOURCES = %D%/nvml.c
tests_host_nvml_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_host_nvml_la_LIBADD =
tests_host_nvml_old_la_SOURCES = %D%/nvml_old.c
tests_host_nvml_old_la_LDFLAGS = $(tests_host_nvml_la_LDFLAGS)
tests_host_nvml_old_la_LIBADD =
