libprb_la_SOURCES += %D%/proc.h %D%/elf.h
