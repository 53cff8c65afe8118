libprb_la_SOURCES += %D%/table.h %D%/aggregate.c %D%/authorize.c %D%/db.c %D%/db.h %D%/dialect.c %D%/dialect.h \
	%D%/excerpt.c %D%/excerpt.h %D%/failure.c %D%/functions.c %D%/lookup.c %D%/pushed.c %D%/pushed.h \
	%D%/regex.c %D%/regex.h %D%/rows.c %D%/rows.h %D%/several.c %D%/several.h %D%/settings.c %D%/sqlite.c %D%/sqlite.h %D%/tables.c %D%/token.c %D%/token.h \
	%D%/view.c %D%/vtab.c
