libprb_la_SOURCES += %D%/export.h %D%/export.c %D%/rows.c %D%/timeline.c
# One file a format, in the order of the help; the first is the one without --format.
# To add one: export.h.
EXPORT_FORMATS = %D%/perfetto.c %D%/chrome.c %D%/tensorboard.c
libprb_la_SOURCES += $(EXPORT_FORMATS)
BUILT_SOURCES += %D%/formats.inc %D%/parts.inc
CLEANFILES += %D%/formats.inc %D%/parts.inc
%D%/formats.inc: $(srcdir)/%D%/local.mk
	$(call write_list,FORMAT,$(EXPORT_FORMATS))
# The parts of a timeline, one file each; the first ones come first.
EXPORT_PARTS = %D%/steps.c %D%/modules.c %D%/collectives.c %D%/spans.c %D%/counters.c
libprb_la_SOURCES += $(EXPORT_PARTS)
%D%/parts.inc: $(srcdir)/%D%/local.mk
	$(call write_list,PART,$(EXPORT_PARTS))
