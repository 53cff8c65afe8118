# A kind of question is one file with its name here; kinds.inc is made of this list.
FLEET_KINDS = %D%/stacks.c %D%/profile.c %D%/list.c %D%/metrics.c %D%/skills.c %D%/tasks.c %D%/snapshot.c %D%/hang.c %D%/hang_deep.c %D%/schema.c %D%/rows.c %D%/eval.c %D%/settings.c %D%/configure.c %D%/inject.c %D%/detach.c %D%/debug.c %D%/crash.c
libprb_la_SOURCES += %D%/answers.h %D%/answers.c %D%/merging.h %D%/merging.c %D%/hang.h $(FLEET_KINDS)
BUILT_SOURCES += %D%/kinds.inc
CLEANFILES += %D%/kinds.inc
%D%/kinds.inc: $(srcdir)/%D%/local.mk
	$(call write_list,KIND,$(FLEET_KINDS))
