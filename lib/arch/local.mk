libprb_la_SOURCES += %D%/aarch64.c %D%/arch.c %D%/arch.h %D%/registers.h %D%/x86_64.c
