# What needs the probe inside: load it, run code there, set it, start with it, take it out.
probing_SOURCES += %D%/config_command.h %D%/evaluate.c %D%/evaluate.h %D%/probe.c %D%/probe.h
