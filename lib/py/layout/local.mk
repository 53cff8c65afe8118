# Where CPython keeps things.  To add a version: layout.h.
LAYOUTS = %D%/3.4.def %D%/3.5.def %D%/3.6.def %D%/3.7.def %D%/3.8.def %D%/3.9.def %D%/3.10.def \
	%D%/3.11.def %D%/3.12.def %D%/3.13.def %D%/3.13t.def %D%/3.14.def %D%/3.14t.def %D%/3.15.def \
	%D%/3.15t.def
BUILT_SOURCES += %D%/all.inc
CLEANFILES += %D%/all.inc
%D%/all.inc: $(srcdir)/%D%/local.mk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && printf '#include "py/layout/%s"\n' $(notdir $(LAYOUTS)) >$@.new && mv $@.new $@

LAYOUT_FILES = $(LAYOUTS) %D%/fields.def %D%/traits.def %D%/patches.def %D%/patches-aarch64.def
libprb_la_SOURCES += $(LAYOUT_FILES) %D%/layout.h %D%/layout.c %D%/debug_offsets.c
EXTRA_DIST += %D%/mk-layouts.sh %D%/mk-patches.py %D%/mk/mk.c %D%/mk/mk.h %D%/mk/interpreter.h %D%/mk/objects.h %D%/mk/asyncio.h %D%/mk/traits.h \
	%D%/mk/debug_offsets.h %D%/mk/aarch64.h

# Print the files of the interpreters found (or of LAYOUT_INCLUDES: see mk-layouts.sh) again, into the source tree.
layouts:
	CC='$(CC)' $(srcdir)/%D%/mk-layouts.sh $(srcdir)/%D% $(LAYOUT_INCLUDES)
.PHONY: layouts
