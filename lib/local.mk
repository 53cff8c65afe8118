# libprb.la: everything, all symbols within reach, for libprobing, the command and the tests.
# libprobing.so: the same archive; only what a header marks PRB_API is exported, with the version that libprobing.map gives it.
include_HEADERS += %D%/probing.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = %D%/probing.pc
noinst_LTLIBRARIES += libprb.la
lib_LTLIBRARIES += libprobing.la

libprb_la_SOURCES = %D%/probing.h
libprb_la_LIBADD = $(JANSSON_LIBS) -ldl
libprobing_la_SOURCES =
libprobing_la_LIBADD = libprb.la
# Calls within the library need no look-up when a command starts.  libm only for what libc lacks, which should be nothing:
# loading it costs every command 0.06 ms (base/real.h).
LIBPROBING_NAMES = libprobing.so libprobing.so.0 libprobing.so.0.0.0
libprobing_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined \
	-Wl,--version-script=$(srcdir)/%D%/libprobing.map -Wl,-Bsymbolic-functions,-lc,--as-needed,-lm,--no-as-needed
EXTRA_libprobing_la_DEPENDENCIES = $(srcdir)/%D%/libprobing.map
EXTRA_DIST += %D%/libprobing.map

include lib/base/local.mk
include lib/mem/local.mk
include lib/proc/local.mk
include lib/arch/local.mk
include lib/py/local.mk
include lib/tensor/local.mk
include lib/repr/local.mk
include lib/native/local.mk
include lib/ring/local.mk
include lib/inspect/local.mk
include lib/trace/local.mk
include lib/profile/local.mk
include lib/sample/local.mk
include lib/store/local.mk
include lib/host/local.mk
include lib/comm/local.mk
include lib/training/local.mk
include lib/allocation/local.mk
include lib/sql/local.mk
include lib/plugin/local.mk
include lib/collect/local.mk
include lib/table/local.mk
include lib/export/local.mk
include lib/skill/local.mk
include lib/crash/local.mk
include lib/net/local.mk
include lib/format/local.mk
