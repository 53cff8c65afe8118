# The pip package: `pip install .` (backend.py) or `make wheel`.  Its copy of the tool finds libprobing.so beside itself.
PYTHON_PACKAGE = %D%/probing_c.pth %D%/_probing_hook.py %D%/_probing_rules.py %D%/_probing_birth.py %D%/probing/__init__.py %D%/probing/__main__.py %D%/probing/py.typed \
	%D%/probing_c/__init__.py %D%/probing_c/__main__.py %D%/probing_c/_config.py %D%/probing_c/_debug.py %D%/probing_c/_log.py %D%/probing_c/_native.py \
	%D%/probing_c/_jupyter.py %D%/probing_c/_notebook.py %D%/probing_c/_other.py %D%/probing_c/_spans.py %D%/probing_c/_tables.py %D%/probing_c/_tool.py %D%/probing_c/kernel.py %D%/probing_c/py.typed
EXTRA_DIST += pyproject.toml %D%/DESCRIPTION.md %D%/backend.py $(PYTHON_PACKAGE)

PYTHON_NATIVE = %D%/native/probing %D%/native/libprobing.so.0
%D%/native/probing: $(probing_OBJECTS) libprobing.la
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -o $@ $(probing_OBJECTS) \
		.libs/libprobing.so $(JANSSON_LIBS) -ldl $(LIBS) -Wl,-rpath,'$$ORIGIN'
if SERVE
PYTHON_NATIVE += %D%/native/probing-serve
%D%/native/probing-serve: probing-serve
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp probing-serve $@
endif
%D%/native/libprobing.so.0: libprobing.la
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp .libs/libprobing.so.0 $@
if PROBE
PYTHON_NATIVE += %D%/native/libprobe.so %D%/native/libprobing-nccl.so
%D%/native/libprobe.so: $(pkglib_LTLIBRARIES)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp .libs/libprobe.so $@
%D%/native/libprobing-nccl.so: $(pkglib_LTLIBRARIES)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp .libs/libprobing-nccl.so $@
endif
CLEANFILES += $(PYTHON_NATIVE)

python-native: $(PYTHON_NATIVE)
# What `make install` has beside programs and libraries: for gdb, editors and readers; the man page and completions.
python-share: all
	$(AM_V_GEN)rm -rf %D%/stage %D%/share %D%/data && $(MAKE) -s install-data DESTDIR='$(abs_builddir)/%D%/stage' \
		prefix=/ datadir=/share includedir=/include libdir=/lib >/dev/null && $(MKDIR_P) %D%/data/share && \
	mv %D%/stage/share/$(PACKAGE) %D%/share && rm -rf %D%/stage/share/gdb %D%/share/gdb/probing_gdb/installed.py && \
	mv %D%/stage/share/* %D%/data/share/ && rm -rf %D%/stage && \
	{ test ! -e $(VSIX) || cp $(VSIX) %D%/share/editors/probing.vsix; }
wheel: $(PYTHON_NATIVE) python-share
	$(AM_V_GEN)$(PYTHON) $(srcdir)/%D%/backend.py wheel %D%/native dist
wheel-clean:
	rm -f dist/probing_c-*.whl
	rm -rf %D%/editable %D%/share %D%/data %D%/stage
clean-local: wheel-clean
.PHONY: python-native python-share wheel wheel-clean
