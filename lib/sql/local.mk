libprb_la_SOURCES += %D%/table.h
