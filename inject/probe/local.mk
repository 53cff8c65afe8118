# libprobe.so: what goes into the target.  libc only, one symbol, never unloaded (detached is not unmapped).
# The parts of lib/ that it needs are compiled into it, hidden; libprbprobe.la is the same for its unit tests.
if PROBE
noinst_LTLIBRARIES += libprbprobe.la
pkglib_LTLIBRARIES += libprobe.la
else
EXTRA_LTLIBRARIES += libprbprobe.la libprobe.la
endif

# Both sides.
libprb_la_SOURCES += %D%/server/protocol.h %D%/server/message.c %D%/server/message.h %D%/socket_path.c %D%/socket_path.h %D%/libc.h \
	%D%/setting_table.c %D%/setting_table.h %D%/setting_value.c %D%/setting_value.h %D%/torch/spec.c %D%/torch/spec.h %D%/torch/ending_text.c %D%/torch/ending.h \
	%D%/serve/address.c %D%/serve/address.h

libprbprobe_la_SOURCES = %D%/start.h %D%/part.h %D%/parts.c %D%/parts.def %D%/own_fds.c %D%/own_fds.h %D%/thread.c %D%/thread.h \
	%D%/python_switches.c %D%/python_switches.h %D%/settings.c %D%/settings.def %D%/settings.h %D%/setting_table.c %D%/setting_table.h \
	%D%/setting_value.c %D%/setting_value.h %D%/log.c %D%/log.h %D%/socket_path.c %D%/socket_path.h %D%/socket_path_make.c %D%/libc.h \
	lib/crash/record.h lib/base/buf.c lib/base/descriptors.c lib/base/error.c lib/base/file.c lib/base/json_text.c lib/base/nearest.c lib/base/secret.c lib/base/secret_look.c lib/base/utf8.c lib/proc/ranks.c lib/proc/stat.c \
	lib/ring/chunk.c lib/ring/columns.c lib/ring/file.c lib/ring/folder.c lib/ring/process.c lib/ring/reader.c lib/ring/settings.c \
	lib/ring/table.c lib/ring/write.c \
	lib/table/recorded/names.c lib/training/watched.c
include inject/probe/server/local.mk
include inject/probe/python/local.mk
include inject/probe/debug/local.mk
include inject/probe/debug/agent/local.mk
include inject/probe/crash/local.mk
include inject/probe/memory/local.mk
include inject/probe/outside/local.mk
include inject/probe/tables/local.mk
include inject/probe/cuda/local.mk
include inject/probe/torch/local.mk
include inject/probe/comm/local.mk
include inject/probe/watch/local.mk
include inject/probe/serve/local.mk
libprb_la_SOURCES += %D%/python/sources.c %D%/python/sources.h %D%/python/bytecode_form.c %D%/python/bytecode_form.h
nodist_libprb_la_SOURCES = $(probe_python_bytes)
nodist_libprbprobe_la_SOURCES = $(probe_python_bytes)
libprbprobe_la_CPPFLAGS = $(AM_CPPFLAGS) -DPRB_IN_PROBE -include inject/probe/libc.h
libprbprobe_la_LIBADD = -lpthread -ldl
libprobe_la_SOURCES = %D%/entry.c %D%/preload.c
libprobe_la_CPPFLAGS = $(libprbprobe_la_CPPFLAGS)
libprobe_la_LIBADD = libprbprobe.la
libprobe_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined \
	-Wl,--version-script=$(srcdir)/%D%/probe.map -Wl,--exclude-libs,ALL -Wl,--as-needed -Wl,-Bsymbolic \
	-Wl,-z,nodelete -Wl,-z,noexecstack -Wl,-z,relro -Wl,-z,now -Wl,-z,defs
EXTRA_libprobe_la_DEPENDENCIES = $(srcdir)/%D%/probe.map
EXTRA_DIST += %D%/probe.map %D%/ruff.toml
