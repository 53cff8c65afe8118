# Skills: one Markdown file each (README.md here), part of the library, and installed to be read.
# To add one: builtin/NAME.md, its name here, and a job in tests/skills that it must find.
SKILLS = %D%/builtin/health.md %D%/builtin/hang.md %D%/builtin/slow.md %D%/builtin/leak.md %D%/builtin/nan.md \
	%D%/builtin/crash.md %D%/builtin/overhead.md %D%/builtin/comm.md
libprb_la_SOURCES += %D%/skill.h %D%/builtin.c %D%/diagnose.c %D%/find.c %D%/install.c %D%/json.c %D%/kept.c %D%/kept.h %D%/parse.c
skillsdir = $(pkgdatadir)/skills
dist_skills_DATA = $(SKILLS)
BUILT_SOURCES += %D%/skills.inc
CLEANFILES += %D%/skills.inc
%D%/skills.inc: $(SKILLS) $(srcdir)/%D%/local.mk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && for file in $(SKILLS); do \
		printf 'SKILL(' && od -An -v -tu1 $(srcdir)/$$file | sed 's/[0-9][0-9]*/&,/g' && printf '0)\n'; \
	done >$@.new && mv $@.new $@
