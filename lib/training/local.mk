libprb_la_SOURCES += %D%/clock.c %D%/clock.h %D%/clocks.def %D%/phase.c %D%/phase.h %D%/phases.c \
	%D%/phases.def %D%/phases.h %D%/plan.c \
	%D%/trace.h %D%/variables.c %D%/variables.h %D%/functions.c %D%/watched.c %D%/watched.h %D%/variable_rows.h
