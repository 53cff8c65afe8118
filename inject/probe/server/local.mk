# The control socket: who connects, what is asked, and the end.
libprbprobe_la_SOURCES += %D%/server.c %D%/server.h %D%/finish.c %D%/listen.c %D%/listen.h %D%/connection.c \
	%D%/request.c %D%/request.h %D%/requests.def %D%/basic.c %D%/protocol.h %D%/message.c %D%/message.h
