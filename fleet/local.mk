# Many machines: one question to all ranks of a job.  Part of libprobing; commands and servers use fleet.h.
# A kind of question is one file with its name here; kinds.inc is made of this list.
FLEET_KINDS = %D%/kind/stacks.c %D%/kind/hang.c %D%/kind/schema.c %D%/kind/rows.c %D%/kind/eval.c
libprb_la_SOURCES += %D%/fleet.h %D%/rank_set.h %D%/rank_set.c %D%/coverage.h %D%/coverage.c %D%/merged.h %D%/merged.c %D%/eval_answers.h %D%/eval_answers.c \
	%D%/address.h %D%/address.c %D%/kind.h %D%/message.h %D%/request.c %D%/reply.c %D%/host.h %D%/host.c %D%/identity.c \
	%D%/identities.def %D%/child.h %D%/child.c %D%/child_serve.c %D%/transport.h %D%/local.c %D%/root.c $(FLEET_KINDS)
# Does a job hang?
libprb_la_SOURCES += %D%/hang.h %D%/hang_kinds.def %D%/waits.def %D%/evidence.h %D%/evidence.c %D%/signs.c %D%/recorder.c \
	%D%/verdict.c %D%/wavefront.h %D%/wavefront.c %D%/hang_json.c
# SQL over the rows of all ranks; what travels is in rows/.
libprb_la_SOURCES += %D%/sql.h %D%/sql.c
BUILT_SOURCES += %D%/kinds.inc
CLEANFILES += %D%/kinds.inc
%D%/kinds.inc: $(srcdir)/%D%/local.mk
	$(call write_list,KIND,$(FLEET_KINDS))
# The bus and the agents on it.  keys.c opens libcrypto when it is first needed, bus.c libnats.
libprb_la_SOURCES += %D%/agent.c %D%/agent.h %D%/agent_log.c %D%/agent_work.c %D%/attach.c %D%/bus.c %D%/bus.h %D%/bus_file.c \
	%D%/bus_file.h %D%/cluster.h %D%/go.c %D%/go.h %D%/keys.c %D%/keys.h %D%/nats.c %D%/parts.c %D%/roster.c %D%/roster.h %D%/up.c %D%/up.h %D%/up_files.c %D%/up_server.c
