libprb_la_SOURCES += %D%/ring.h %D%/format.h %D%/columns.h %D%/folder.h %D%/writer.h %D%/chunk.c %D%/columns.c %D%/file.c \
	%D%/folder.c %D%/process.c %D%/reader.c %D%/settings.c %D%/table.c %D%/write.c
