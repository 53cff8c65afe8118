# The plugin that NCCL loads: libc only.
if PROBE
pkglib_LTLIBRARIES += libprobing-nccl.la
else
EXTRA_LTLIBRARIES += libprobing-nccl.la
endif
libprobing_nccl_la_SOURCES = %D%/plugin.c %D%/events.h %D%/host.h %D%/interface.h %D%/tables.h
libprobing_nccl_la_LIBADD = -lpthread
libprobing_nccl_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined -Wl,--as-needed -Wl,-z,noexecstack \
	-Wl,-z,relro -Wl,-z,now -Wl,-z,defs -Wl,-z,nodelete
