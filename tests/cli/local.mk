PYTESTS += %D%/test_cli.py %D%/test_targets.py %D%/test_output.py
EXTRA_DIST += %D%/conftest.py
