PYTESTS += %D%/test_cli.py
