libprb_la_SOURCES += %D%/registry.c %D%/registry.h %D%/tables.def \
	%D%/maps_now.c %D%/maps_now.h %D%/stat_text.c %D%/stat_text.h \
	%D%/user_names.c %D%/user_names.h \
	%D%/ring_folder.c %D%/ring_folder.h %D%/user_tables.c %D%/user_tables.h \
	%D%/kept_tables.c %D%/kept_tables.h \
	%D%/thread_cells.c %D%/thread_cells.h %D%/tensor_cells.c %D%/tensor_cells.h \
	%D%/heap_now.c %D%/heap_now.h %D%/profiling_rows.c %D%/profiling_rows.h
# One file a table.
libprb_la_SOURCES += \
	%D%/information_schema_columns.c %D%/information_schema_functions.c \
	%D%/information_schema_settings.c %D%/information_schema_tables.c \
	%D%/profile.c %D%/profiling_data.c \
	%D%/python_backtrace.c %D%/python_exception.c %D%/python_interpreters.c %D%/python_locals.c \
	%D%/python_modules.c %D%/python_objects.c %D%/python_tasks.c %D%/python_threads.c \
	%D%/system_crash.c %D%/system_environment.c %D%/system_libraries.c %D%/system_maps.c %D%/system_process.c \
	%D%/system_threads.c \
	%D%/torch_modules.c %D%/torch_parameters.c %D%/torch_tensors.c
