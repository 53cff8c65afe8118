libprb_la_SOURCES += %D%/clocks.c %D%/clocks.h
libprb_la_SOURCES += %D%/ras.c %D%/ras.h %D%/ras_report.c %D%/ras_report.h %D%/ras_json.c %D%/ras_text.c
