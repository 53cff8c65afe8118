libprb_la_SOURCES += %D%/chunk.c %D%/chunk.h %D%/column.c %D%/column.h %D%/drain.c %D%/drain.h \
	%D%/file.c %D%/file.h %D%/file_parts.h %D%/file_read.c %D%/file_write.c %D%/folder.c %D%/folder.h %D%/host.h %D%/keep.c %D%/keep.h %D%/opened.c %D%/pack.c %D%/pack.h %D%/planes.c %D%/planes.h %D%/scale.c %D%/scale.h %D%/thin.c %D%/thin.h
EXTRA_DIST += %D%/README.md
