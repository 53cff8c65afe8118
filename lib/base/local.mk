libprb_la_SOURCES += %D%/buf.c %D%/buf.h %D%/cleanup.h %D%/clock.h %D%/descriptors.c %D%/descriptors.h %D%/dlopen_note.h %D%/error.c %D%/error.h %D%/file.c %D%/file.h \
	%D%/hash_map.c %D%/hash_map.h %D%/hex.h %D%/index.c %D%/index.h %D%/join.h %D%/json_text.c %D%/json_text.h \
	%D%/lazy.c %D%/lazy.h %D%/nearest.c %D%/nearest.h %D%/new_file.c %D%/new_file.h %D%/state_folder.c %D%/state_folder.h \
	%D%/progress.c %D%/progress.h %D%/protobuf.c %D%/protobuf.h %D%/rank_variables.h %D%/raw.h %D%/real.h %D%/secret.c %D%/secret.h %D%/secret_look.c %D%/syscalls.h \
	%D%/utf8.c %D%/utf8.h %D%/version.c %D%/words.c %D%/words.h %D%/worker.c %D%/worker.h
