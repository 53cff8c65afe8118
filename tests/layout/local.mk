# The layout files against the headers, the debug information and the memory of every interpreter found.
PYTESTS += %D%/test_regenerate.py %D%/test_stated.py %D%/test_memory.py
EXTRA_DIST += %D%/layouts.py %D%/memory.py
