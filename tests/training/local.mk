# What a training job does over time.
PYTESTS += %D%/test_phases.py %D%/test_growth.py %D%/test_variables.py %D%/test_watch.py %D%/test_slots.py %D%/test_trace.py %D%/test_steps_view.py %D%/test_promised.py %D%/test_unharmed.py
EXTRA_DIST += %D%/conftest.py %D%/loops.py
