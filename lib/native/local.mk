libprb_la_SOURCES += %D%/native.h %D%/unwinder.h %D%/step.h %D%/source.h %D%/evaluator_symbols.def \
	%D%/evaluator_symbols.c %D%/scan.c %D%/step.c %D%/libraries.c %D%/libraries.h %D%/memory.c %D%/merge.c %D%/rules.c %D%/source.c \
	%D%/stop.c %D%/stopper.c %D%/stopper.h %D%/symbol.c %D%/tables.c %D%/unwind.c
libprb_la_SOURCES += %D%/stop_all.h %D%/stop_all.c
