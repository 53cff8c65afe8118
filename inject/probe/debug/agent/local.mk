# The debugger's Python in the target, included by ../local.mk: NAME.py goes into the library as bytes, all in parts.inc.
probe_debug_parts = agent json threads session codes conditions names breakpoints stepping targets goto stack handles \
	values scopes nodes variables evaluate awaits exceptions uncaught sources bytecode memory arrays modules \
	data output snapshot timeouts hidden
probe_debug_files = $(probe_debug_parts:%=%D%/%.py)
BUILT_SOURCES += %D%/parts.inc
CLEANFILES += %D%/parts.inc
EXTRA_DIST += $(probe_debug_files)
%D%/parts.inc: $(probe_debug_files) Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && { for part in $(probe_debug_parts); do \
	echo "static const char debug_$${part}_source[] = {"; \
	od -An -v -tu1 -w16 $(srcdir)/%D%/$$part.py | sed 's/ *\([0-9][0-9]*\)/\1,/g'; echo '0};'; done; \
	printf '#define DEBUG_PARTS(P)'; printf ' P(%s)' $(probe_debug_parts); echo; } >$@.tmp && mv $@.tmp $@
