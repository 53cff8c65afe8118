libprb_la_SOURCES += %D%/allocation.h %D%/region.h %D%/read.c %D%/names.c %D%/profile.c
