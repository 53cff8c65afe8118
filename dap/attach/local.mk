# To a target and away from it: attach, launch and the program that it starts, disconnect and terminate.
libprb_la_SOURCES += %D%/attach.h %D%/relay.c %D%/relay.h %D%/program.c %D%/program.h \
	%D%/program_command.c %D%/program_command.h %D%/tree.c %D%/tree.h %D%/ending.h %D%/exit_status.c %D%/exit_status.h
