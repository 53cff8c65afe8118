# What needs the probe inside: load it, run code there, set it, start with it, take it out.
probing_SOURCES += %D%/config.c %D%/config_command.h %D%/detach.c %D%/eval.c %D%/evaluate.c %D%/evaluate.h %D%/inject.c %D%/launch.c %D%/probe.c %D%/probe.h
