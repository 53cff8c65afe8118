libprb_la_SOURCES += %D%/repr.h %D%/writer.h %D%/repr.c %D%/array.c %D%/container.c %D%/instance.c %D%/named.c %D%/torch.c %D%/standard.c %D%/dates.c %D%/numbers.c %D%/locks.c %D%/parts.h %D%/parts.c
