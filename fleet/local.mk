# Many machines: one question to all ranks of a job.  Part of libprobing.  What commands and servers use has its header here.
libprb_la_SOURCES += %D%/fleet.h %D%/cluster.h %D%/hang.h %D%/sql.h %D%/profile.h %D%/merged.h %D%/eval_answers.h %D%/objects.h %D%/crashes.h %D%/skills.h \
	%D%/settings.def %D%/settings.h %D%/settings.c %D%/coverage.h %D%/coverage.c %D%/rank_set.h %D%/rank_set.c
include fleet/rows/local.mk
include fleet/answers/local.mk
include fleet/hang/local.mk
include fleet/message/local.mk
include fleet/host/local.mk
include fleet/bus/local.mk
include fleet/stream/local.mk
include fleet/history/local.mk
include fleet/ask/local.mk
include fleet/agent/local.mk
include fleet/up/local.mk
include fleet/kind/local.mk
include fleet/skills/local.mk
