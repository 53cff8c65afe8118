# Commands on all ranks of a job.
probing_SOURCES += %D%/job.c %D%/job.h %D%/rows.c %D%/rows.h %D%/stacks.c %D%/stacks.h %D%/act.c %D%/act.h %D%/eval.c %D%/eval.h \
	%D%/crashes.c %D%/crashes.h %D%/debug.c %D%/debug.h %D%/sampling.c %D%/sampling.h %D%/skills.c %D%/skills.h
