# What the replies to a question add up to.
libprb_la_SOURCES += %D%/merged.c %D%/packed.h %D%/eval_answers.c %D%/objects.c %D%/crashes.c
