# What a release promises: the library's interface, files of the first release, what is installed and packaged.
PYTESTS += %D%/test_aarch64.py %D%/test_abi.py %D%/test_bare.py %D%/test_containers.py %D%/test_formats.py %D%/test_install.py %D%/test_packages.py %D%/test_systems.py
FIRST_RELEASE = crash.snap.xz expected.json losses.ring.xz profile.db.xz snapshot.snap.xz store.db.xz
EXTRA_DIST += %D%/libprobing.abi.xz %D%/libprobing.abignore %D%/samples.py $(FIRST_RELEASE:%=%D%/0.1/%)

# After something was added to the installed headers: write down the library's interface again.
abi: all
	$(AM_V_GEN)cd $(srcdir) && abidw --suppressions %D%/libprobing.abignore --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed \
		--type-id-style hash --exported-interfaces-only $(abs_top_builddir)/.libs/libprobing.so.0 | \
		$(PYTHON) -c 'import lzma, sys; sys.stdout.buffer.write(lzma.compress(sys.stdin.buffer.read()))' >%D%/libprobing.abi.xz
.PHONY: abi
