# Programs of tests/targets under every CPython found; see pythons.py for which, and how to choose.
PYTESTS += %D%/test_stacks.py %D%/test_states.py %D%/test_json.py %D%/test_torn.py %D%/test_torch.py %D%/test_native.py %D%/test_merge.py
PYTESTS += %D%/test_tables.py %D%/test_tasks.py %D%/test_cores.py %D%/test_environment.py %D%/test_gil.py
# Tensors and objects: tensor_dump prints what probing.h tells of them.
check_PROGRAMS += %D%/tensor_dump
tests_live_tensor_dump_LDADD = libprobing.la $(JANSSON_LIBS)
PYTESTS += %D%/test_tensors.py %D%/test_objects.py
# Values: object_dump prints what the reader makes of them.
check_PROGRAMS += %D%/object_dump
PYTESTS += %D%/test_values.py
EXTRA_DIST += %D%/conftest.py
# Rings: ring_write writes them as the probe would.
check_PROGRAMS += %D%/ring_write
PYTESTS += %D%/test_rings.py
