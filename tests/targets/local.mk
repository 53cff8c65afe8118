EXTRA_DIST += %D%/oracle.py %D%/alone.py %D%/alternate.py %D%/broken_chain.py %D%/callbacks.py %D%/busy.py %D%/churn.py %D%/hot.py %D%/collecting.py %D%/counting.py %D%/growing.py %D%/comprehensions.py \
	%D%/coroutines.py %D%/decorators.py %D%/deep.py %D%/ending.py %D%/executed.py %D%/finalizing.py %D%/fleeting.py %D%/generators.py %D%/hang_jobs.py %D%/hung.py \
	%D%/many_threads.py %D%/names.py %D%/positions.py %D%/recursion.py %D%/restless.py %D%/swaps.py %D%/tensors.py %D%/objects.py %D%/shutdown.py %D%/subinterpreters.py \
	%D%/looked_at.py %D%/steady.py %D%/threads.py %D%/torch_device.py %D%/torch_exact.py %D%/torch_bare.py %D%/torch_frameworks.py %D%/torch_logged.py %D%/torch_loops.py %D%/torch_modules.py %D%/torch_programs.py %D%/torch_train.py %D%/torch_watched.py %D%/probed.py %D%/random_values.py %D%/values.py
EXTRA_DIST += %D%/torch_slots.py %D%/fake_torch/torch/__init__.py %D%/fake_torch/torch/nn/__init__.py \
	%D%/fake_torch/torch/nn/modules/__init__.py %D%/fake_torch/torch/nn/modules/module.py
EXTRA_DIST += %D%/debugged.py %D%/debugged_late.py %D%/births.py %D%/debugged_hidden.py %D%/debugged_torch.py %D%/ranked_torch.py
EXTRA_DIST += %D%/allocating.py %D%/parking.py %D%/signalled.py %D%/debugged_by_gdb.py %D%/torch_by_gdb.py %D%/tasks.py %D%/torn_dicts.py %D%/torn_loss.py %D%/watched.py %D%/watched_loop.py %D%/watched_calls.py
EXTRA_DIST += %D%/shares.py %D%/reborn.py %D%/hostile_names.py %D%/spins.py %D%/ranks.py %D%/turns.py %D%/layered.py %D%/chains.py %D%/raised.py
EXTRA_DIST += %D%/collectives.py %D%/nccl_job.py %D%/torch_unharmed.py
EXTRA_DIST += %D%/moved.py %D%/torch_gpu.py %D%/torch_nccl.py
# Programs in C that report through shared memory (report.h).
check_PROGRAMS += %D%/storm %D%/canary %D%/calls %D%/forks %D%/churn \
	%D%/guarded %D%/embed %D%/clobber %D%/liar %D%/flicker
tests_targets_storm_LDADD =
tests_targets_canary_LDADD =
tests_targets_calls_LDADD = $(RT_LIBS)
tests_targets_forks_LDADD =
tests_targets_churn_LDADD =
tests_targets_guarded_LDADD =
tests_targets_embed_LDADD = -ldl
tests_targets_clobber_LDADD =
tests_targets_flicker_LDADD =
tests_targets_liar_LDADD =
tests_targets_liar_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
# A module of libtool's, which is made though nothing installs it.
check_LTLIBRARIES += %D%/counted.la
tests_targets_counted_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere -Wl,-z,noexecstack
EXTRA_DIST += %D%/report.h
