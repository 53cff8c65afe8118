# `make bench`: the figures of README.md here, beside the peers that are installed.  sample is also what test_torn.py uses.
check_PROGRAMS += tests/bench/sample
check_PROGRAMS += tests/bench/measure
tests_bench_measure_LDADD =
EXTRA_DIST += %D%/allocates.py %D%/allocating.py %D%/bench.py %D%/calls.py %D%/communication.py %D%/crashes.py %D%/debuggers.py %D%/debugging.py %D%/gaps.py %D%/getting_in.py \
	%D%/looking.py %D%/page.py %D%/parked.py %D%/profiling.py %D%/sized.py %D%/spinners.py %D%/tensors.py %D%/timing.py %D%/traced.py %D%/tracing.py %D%/train.py %D%/watched.py %D%/watching.py

.PHONY: bench
bench: all $(check_PROGRAMS) $(check_LTLIBRARIES)
	$(AM_V_GEN)$(AM_TESTS_ENVIRONMENT) $${PROBING_PYTEST:-$(PYTHON)} $(srcdir)/tests/bench/bench.py --page $(srcdir)/tests/bench/README.md $(BENCHFLAGS)
tests_bench_sample_LDADD = libprb.la
# What a row of a ring costs.
check_PROGRAMS += tests/bench/ring_rows
tests_bench_ring_rows_LDADD = libprb.la $(SQLITE_LIBS)
# How fast statistics of tensors are.
check_PROGRAMS += tests/bench/tensor_speed
tests_bench_tensor_speed_LDADD = libprb.la -lm
# Where the CPU time of a command goes, what its system calls cost at least, and processes to list.
check_LTLIBRARIES += %D%/account.la
tests_bench_account_la_SOURCES = %D%/account.c
tests_bench_account_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_bench_account_la_LIBADD = -ldl
# What any debugger pays that sees calls by PEP 523.
check_LTLIBRARIES += %D%/evaluator.la
tests_bench_evaluator_la_SOURCES = %D%/evaluator.c
tests_bench_evaluator_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_bench_evaluator_la_LIBADD = -ldl
check_PROGRAMS += tests/bench/floor tests/bench/crowd tests/bench/stops
tests_bench_floor_LDADD =
tests_bench_crowd_LDADD =
tests_bench_stops_LDADD =
# Recording of PyTorch: its peer in C, how long the GIL is held, and a tool that turns it on and off, which test_unharmed.py has, too.
check_LTLIBRARIES += %D%/c_hook.la %D%/gil_held.la
tests_bench_c_hook_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_bench_c_hook_la_LIBADD = -ldl
tests_bench_gil_held_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
tests_bench_gil_held_la_LIBADD = -ldl -lpthread
check_PROGRAMS += tests/bench/toggle
tests_bench_toggle_LDADD = libprb.la
# How long a reading of the Flight Recorder takes.
check_PROGRAMS += tests/bench/recorder_read
tests_bench_recorder_read_LDADD = libprb.la
# What the store makes of rows.
check_PROGRAMS += tests/bench/store_speed
tests_bench_store_speed_LDADD = libprb.la $(SQLITE_LIBS) -lm
EXTRA_DIST += %D%/keeping.py %D%/outside.py %D%/served.py %D%/shown.py
# Where the time of a crash dump goes: the linker puts its clocks between the library's functions.
check_PROGRAMS += tests/bench/crash_pieces
tests_bench_crash_pieces_LDADD = libprb.la $(SQLITE_LIBS) -lm
tests_bench_crash_pieces_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=prb_stop_process,--wrap=prb_target_over_debugger,--wrap=prb_crash_rings \
	-Wl,--wrap=prb_exceptions_all,--wrap=prb_crash_tensors,--wrap=prb_secrets_find,--wrap=prb_secrets_hide \
	-Wl,--wrap=prb_proc_save,--wrap=prb_stacks_take
# What SQL over the rows of all ranks of a job costs the asker.
check_PROGRAMS += tests/bench/fleet_rows
tests_bench_fleet_rows_LDADD = libprb.la
EXTRA_DIST += %D%/across.py
