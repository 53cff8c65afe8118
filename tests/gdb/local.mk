# The gdb plugin with each gdb found (this machine's, and that of newer-pythons.sh), in batch mode: run by hand until it has
# run with every CPython.
EXTRA_DIST += %D%/conftest.py %D%/gdbs.py %D%/test_commands.py
