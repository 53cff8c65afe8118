# The bus, and what travels on it.  keys.c opens libcrypto when it is first needed, bus.c libnats.
libprb_la_SOURCES += %D%/bus.h %D%/bus.c %D%/bus_file.h %D%/bus_file.c %D%/events.h %D%/events.c %D%/go.h %D%/go.c %D%/keys.h %D%/keys.c %D%/parts.c \
	%D%/roster.h %D%/roster.c %D%/stream.h %D%/stream.c
