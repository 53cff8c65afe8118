# Packages and releases (README.md).  debian/ is here, not at the top, which has only what readers of the code need: release.py, or
# `cp -r packaging/debian .`, puts it where Debian's tools look.
DEBIAN_FILES = %D%/debian/changelog %D%/debian/control %D%/debian/copyright %D%/debian/rules %D%/debian/source/format \
	%D%/debian/libprobing-dev.install %D%/debian/libprobing0.lintian-overrides %D%/debian/probing.lintian-overrides %D%/debian/libprobing0.install %D%/debian/libprobing0.symbols %D%/debian/probing.install \
	%D%/debian/probing.links %D%/debian/probing.prerm %D%/debian/python3-probing.install
EXTRA_DIST += %D%/dlopen_notes.py %D%/python_files.py %D%/release.py %D%/rpm/probing.spec %D%/rpm/rpmlint.toml $(DEBIAN_FILES)
include packaging/wheel/local.mk

# The libraries that are opened by name at run time: name, priority, what for (lib/base/dlopen_note.h).
dlopen-notes: all
	@$(PYTHON) $(srcdir)/%D%/dlopen_notes.py .libs/libprobing.so .libs/probing
# Of the last commit, into dist/: wheel, source, .deb, .rpm, checksums, bill of materials; with AARCH64=1 also the wheel for AArch64.
release:
	@$(PYTHON) $(srcdir)/%D%/release.py dist $(if $(AARCH64),wheel deb rpm aarch64)
.PHONY: dlopen-notes release
