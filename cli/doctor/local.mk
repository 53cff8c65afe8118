# What works on this machine, and why the rest does not.
probing_SOURCES += %D%/doctor.h %D%/machine.c %D%/installation.c %D%/processes.c
