# What packages need to know.
EXTRA_DIST += %D%/dlopen_notes.py

# The libraries that are opened by name at run time: name, priority, what for (lib/base/dlopen_note.h).
dlopen-notes: all
	@$(PYTHON) $(srcdir)/%D%/dlopen_notes.py .libs/libprobing.so .libs/probing
.PHONY: dlopen-notes
