libprb_la_SOURCES += %D%/registry.c %D%/registry.h %D%/comm_metrics.h
# Columns and rows that several tables have.
libprb_la_SOURCES += %D%/shared/gpus.c %D%/shared/gpus.h %D%/shared/host_history.c %D%/shared/host_history.h %D%/shared/heap.c %D%/shared/heap.h %D%/shared/memory_columns.c %D%/shared/memory_columns.h %D%/shared/moment_columns.c %D%/shared/moment_columns.h \
	%D%/shared/duration.c %D%/shared/duration.h %D%/shared/profile_rows.c %D%/shared/profile_rows.h \
	%D%/shared/collectives.c %D%/shared/collectives.h %D%/shared/collective_numbers.c %D%/shared/collective_numbers.h %D%/shared/collective_order.c %D%/shared/collective_order.h %D%/shared/ras.c %D%/shared/ras.h %D%/shared/pickle.c %D%/shared/pickle.h %D%/shared/recorder.c %D%/shared/recorder.h \
	%D%/shared/stat_columns.c %D%/shared/stat_columns.h \
	%D%/shared/tensor_columns.c %D%/shared/tensor_columns.h \
	%D%/shared/nccl_columns.h %D%/shared/thread_columns.c %D%/shared/thread_columns.h \
	%D%/shared/torch_names.c %D%/shared/torch_names.h %D%/shared/alignment.c %D%/shared/alignment.h %D%/shared/recorded_groups.c %D%/shared/recorded_groups.h %D%/shared/torch_allocator.c %D%/shared/torch_allocator.h %D%/shared/torch_devices.c %D%/shared/torch_devices.h %D%/shared/torch_shadow.c %D%/shared/torch_shadow.h \
	%D%/shared/transfers.c %D%/shared/transfers.h %D%/shared/training_logs.c %D%/shared/training_logs.h %D%/shared/variable_text.c %D%/shared/variable_text.h \
	%D%/shared/usage_rows.c %D%/shared/usage_rows.h %D%/shared/unrecorded.c %D%/shared/unrecorded.h
# Tables that the program wrote itself.
libprb_la_SOURCES += %D%/recorded/dump.c %D%/recorded/dump.h %D%/recorded/each.c %D%/recorded/each.h %D%/recorded/folder.c %D%/recorded/folder.h \
	%D%/recorded/history.c %D%/recorded/history.h %D%/recorded/last_step.c %D%/recorded/last_step.h %D%/recorded/known.c %D%/recorded/known.h %D%/recorded/live.c %D%/recorded/live.h %D%/recorded/names.c %D%/recorded/names.h
# One file a table, in the order of SHOW TABLES; an unqualified name means the first that has it.
# To add one: sql/table.h.
TABLES = %D%/python_backtrace.c %D%/python_exception.c %D%/python_interpreters.c \
	%D%/python_locals.c %D%/python_memory.c %D%/python_modules.c %D%/python_objects.c %D%/python_objects_diff.c %D%/python_stack_samples.c %D%/python_tasks.c \
	%D%/python_threads.c %D%/system_cgroup.c %D%/system_crash.c %D%/system_crashes.c %D%/system_environment.c %D%/system_libraries.c \
	%D%/system_maps.c %D%/system_network.c %D%/system_process.c %D%/system_threads.c %D%/system_usage.c %D%/torch_modules.c \
	%D%/torch_parameters.c %D%/torch_tensors.c %D%/python_torch_phases.c %D%/python_torch_trace.c %D%/python_torch_trace_events.c %D%/python_torch_step_timing.c %D%/python_comm_collective.c %D%/python_variables.c %D%/cpu_utilization.c %D%/gpu_utilization.c %D%/gpu_metrics.c %D%/gpu_processes.c %D%/memory_allocations.c %D%/memory_usage.c %D%/profile.c %D%/profiling_data.c \
	%D%/probing_gaps.c %D%/information_schema_tables.c %D%/information_schema_columns.c \
	%D%/information_schema_functions.c %D%/information_schema_settings.c
# Communication.
TABLES += %D%/nccl_coll_perf.c %D%/nccl_proxy_ops.c %D%/nccl_inflight_ops.c %D%/nccl_net_qp.c %D%/nccl_profiler_counters.c %D%/nccl_ras.c %D%/nccl_ras_ranks.c %D%/comm_metrics.c %D%/probing_clock.c %D%/python_torch_nccl_flight_record.c %D%/python_torch_nccl_pg_status.c
libprb_la_SOURCES += $(TABLES)
BUILT_SOURCES += %D%/tables.inc
CLEANFILES += %D%/tables.inc
%D%/tables.inc: $(srcdir)/%D%/local.mk
	$(call write_list,TABLE,$(TABLES))
