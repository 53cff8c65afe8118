# What a training job does over time.
PYTESTS += %D%/test_phases.py
EXTRA_DIST += %D%/conftest.py
