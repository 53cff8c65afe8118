libprb_la_SOURCES += %D%/mem.h %D%/mem.c %D%/callback.c %D%/core.h %D%/core.c %D%/process.c %D%/record.c %D%/self.c %D%/hide.h %D%/hide.c
libprb_la_SOURCES += %D%/view.h %D%/view.c %D%/view_page.h %D%/refresh.c
