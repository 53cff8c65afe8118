libprb_la_SOURCES += %D%/mem.h %D%/mem.c %D%/callback.c %D%/process.c %D%/self.c
libprb_la_SOURCES += %D%/view.h %D%/view.c %D%/view_page.h %D%/refresh.c
