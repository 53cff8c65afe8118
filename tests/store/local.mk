# The store: what the collector keeps of recorded tables, and what queries say of it.
PYTESTS += %D%/test_collect.py %D%/test_failures.py %D%/test_containers.py %D%/test_keeping.py %D%/test_machine.py %D%/test_settings.py %D%/test_stacks.py %D%/test_times.py %D%/test_whole_job.py
EXTRA_DIST += %D%/conftest.py
