libprb_la_SOURCES += %D%/trace.h %D%/trace.c %D%/order.c %D%/perfetto.c %D%/chrome.c
