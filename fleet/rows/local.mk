# SQL over the rows of all ranks: what is asked of them, what they answer, and the tables of the answers.
libprb_la_SOURCES += %D%/rows.h %D%/answer.c %D%/answers.c %D%/ask.c %D%/ask.h %D%/bytes.h %D%/fetch.c %D%/pack.c %D%/pack.h %D%/plan.c %D%/schema.c %D%/source.h \
	%D%/table.c %D%/unite.c %D%/unpack.c
