# History of all hosts in one place: agents publish rows to a stream of the server, a record takes them into a sink.
libprb_la_SOURCES += %D%/history.h %D%/places.h %D%/places.c %D%/publish.c %D%/postgres.c %D%/postgres.h %D%/postgres_rows.c %D%/postgres_rows.h \
	%D%/postgres_tables.c %D%/postgres_tables.h %D%/record.c %D%/sink.h %D%/sink_postgres.c %D%/sink_store.c %D%/stream.c %D%/taken.c %D%/taken_crash.c
