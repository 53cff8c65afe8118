libprb_la_SOURCES += %D%/registry.c %D%/registry.h %D%/tables.def \
	%D%/information_schema_columns.c %D%/information_schema_functions.c \
	%D%/information_schema_settings.c %D%/information_schema_tables.c
