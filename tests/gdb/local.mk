# The gdb plugin with each gdb found (this machine's, and that of newer-pythons.sh), in batch mode, by MI and by DAP.
PYTESTS += %D%/test_commands.py %D%/test_session.py %D%/test_torch.py
EXTRA_DIST += %D%/conftest.py %D%/same_rows.py
