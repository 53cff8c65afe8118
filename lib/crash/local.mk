libprb_la_SOURCES += %D%/crash.h %D%/record.h %D%/folder.c %D%/info.c %D%/rings.c %D%/tensors.c %D%/write.c
