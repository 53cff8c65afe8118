# What tests of several folders share: a Python package; tests/conftest.py makes fixtures of it.
EXTRA_DIST += %D%/__init__.py %D%/compare.py %D%/first_load.py %D%/gdbs.py %D%/gpus.py %D%/control.py %D%/injection.py %D%/promised.py %D%/protobuf.py %D%/pythons.py %D%/ranks.py %D%/rings.py %D%/target.py %D%/terminal.py %D%/timeline.py %D%/torch_python.py %D%/waits.py
