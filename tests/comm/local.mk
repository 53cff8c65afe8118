# Communication: ranks over gloo, and stand-ins for torch's libraries.
PYTESTS += %D%/test_recorder.py %D%/test_metrics.py %D%/test_nccl.py %D%/test_ras.py
EXTRA_DIST += %D%/conftest.py
# Modules of libtool's, which are made though nothing installs them; their names are what is looked for.
check_LTLIBRARIES += %D%/libtorch_cpu.la %D%/libtorch_cuda.la
tests_comm_libtorch_cpu_la_SOURCES = %D%/fake_torch.c
tests_comm_libtorch_cpu_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_comm_libtorch_cpu_la_LIBADD =
tests_comm_libtorch_cuda_la_SOURCES = %D%/fake_torch.c
tests_comm_libtorch_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -DWITHOUT_RECORDER
tests_comm_libtorch_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_comm_libtorch_cuda_la_LIBADD =
check_LTLIBRARIES += %D%/shifted_clock.la
tests_comm_shifted_clock_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_comm_shifted_clock_la_LIBADD = -ldl
check_LTLIBRARIES += %D%/nccl_host.la
tests_comm_nccl_host_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_comm_nccl_host_la_LIBADD = -ldl
