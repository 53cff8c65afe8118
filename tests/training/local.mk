# What a training job does over time.
PYTESTS += %D%/test_phases.py %D%/test_growth.py %D%/test_variables.py
EXTRA_DIST += %D%/conftest.py
