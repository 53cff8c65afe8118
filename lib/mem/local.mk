libprb_la_SOURCES += %D%/mem.h %D%/view.h
