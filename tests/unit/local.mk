# One C program for each file of the library that can be tested alone; cmocka.  To add one: its name here.
UNIT_TESTS = tests/unit/base tests/unit/line
UNIT_TESTS += tests/unit/arch tests/unit/merge tests/unit/stop tests/unit/unwind
UNIT_TESTS += tests/unit/mem tests/unit/view tests/unit/maps tests/unit/proc tests/unit/elf tests/unit/core
UNIT_TESTS += tests/unit/below tests/unit/layout tests/unit/inject tests/unit/stub
UNIT_TESTS += tests/unit/object tests/unit/array tests/unit/tensor tests/unit/stack
UNIT_TESTS += tests/unit/pickle tests/unit/host tests/unit/usage tests/unit/gpu tests/unit/dialect tests/unit/sql tests/unit/sql_functions tests/unit/secret tests/unit/hide tests/unit/phase
UNIT_TESTS += tests/unit/ring tests/unit/ring_hostile tests/unit/ring_torn tests/unit/store tests/unit/store_file
UNIT_TESTS += tests/unit/dap tests/unit/profile tests/unit/crash
UNIT_TESTS += tests/unit/message tests/unit/settings tests/unit/torch_spec tests/unit/torch tests/unit/probe_log tests/unit/net
UNIT_TESTS += tests/unit/alignment tests/unit/clocks tests/unit/memory
UNIT_TESTS += tests/unit/fleet_merged tests/unit/fleet_rows tests/unit/fleet_sql tests/unit/fleet_told tests/unit/keys tests/unit/roster tests/unit/first_release tests/unit/serve_life
UNIT_TESTS += tests/unit/probe_serve
tests_unit_probe_serve_LDADD = libprbprobe.la $(CMOCKA_LIBS)
tests_unit_serve_life_SOURCES = tests/unit/serve_life.c serve/doors/life.c
tests_unit_settings_LDADD = libprbprobe.la $(CMOCKA_LIBS)
tests_unit_torch_spec_LDADD = libprbprobe.la $(CMOCKA_LIBS)
tests_unit_probe_log_LDADD = libprbprobe.la $(CMOCKA_LIBS)
tests_unit_memory_LDADD = libprbprobe.la $(CMOCKA_LIBS) -lm
tests_unit_torch_LDADD = libprbprobe.la $(CMOCKA_LIBS)
LDADD = libprb.la $(CMOCKA_LIBS) -lm
if HAVE_CMOCKA
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
endif
EXTRA_DIST += tests/unit/old_kernel.h tests/unit/ring.h tests/unit/unit.h tests/unit/numbers.h tests/unit/statements.h tests/unit/image.h tests/unit/object_image.h tests/unit/stack_image.h
