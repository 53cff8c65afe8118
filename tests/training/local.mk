# What a training job does over time.
PYTESTS += %D%/test_phases.py %D%/test_growth.py %D%/test_variables.py %D%/test_watch.py %D%/test_slots.py %D%/test_trace.py %D%/test_steps_view.py %D%/test_promised.py %D%/test_unharmed.py %D%/test_device.py
EXTRA_DIST += %D%/conftest.py %D%/loops.py
# CUDA on a machine without a device.
check_LTLIBRARIES += %D%/fake_cuda.la
tests_training_fake_cuda_la_SOURCES = %D%/fake_cuda.c
tests_training_fake_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_training_fake_cuda_la_LIBADD =
