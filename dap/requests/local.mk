# What clients ask, one file a concern.
DAP_REQUESTS = %D%/initialize.c %D%/threads.c %D%/stack.c %D%/variables.c %D%/breakpoints.c \
	%D%/exceptions.c %D%/running.c %D%/modules.c %D%/memory.c %D%/debugpy.c \
	dap/attach/attach.c dap/attach/launch.c dap/attach/ending.c
libprb_la_SOURCES += $(DAP_REQUESTS) %D%/requests.c %D%/capabilities.c %D%/capabilities.h %D%/stack.h %D%/variables.h
# R(NAME) for each `const struct prb_dap_request prb_dap_NAME` in them; written when a name comes or goes.
BUILT_SOURCES += %D%/requests.inc
CLEANFILES += %D%/requests.inc %D%/requests.stamp
%D%/requests.inc: %D%/requests.stamp ;
%D%/requests.stamp: $(DAP_REQUESTS) $(srcdir)/%D%/local.mk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && list=$(@D)/requests.inc && for file in $(DAP_REQUESTS); do \
		sed -n 's/^const struct prb_dap_request prb_dap_\([a-z_]*\) = .*/R(\1)/p' $(srcdir)/$$file || exit 1; \
	done >$@ && { cmp -s $@ $$list || cp $@ $$list; }
