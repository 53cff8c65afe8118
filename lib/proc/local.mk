libprb_la_SOURCES += %D%/proc.h %D%/source.h %D%/proc.c %D%/live.c %D%/maps.c %D%/code_maps.c %D%/permission.c %D%/ranks.h %D%/ranks.c %D%/environment.h %D%/environment.c %D%/job_name.h %D%/job_name.c %D%/identities.def %D%/stat.h %D%/stat.c
libprb_la_SOURCES += %D%/task.c %D%/same_cpu.h %D%/same_cpu.c
libprb_la_SOURCES += %D%/ids.h %D%/ids.c %D%/below.h %D%/below.c
libprb_la_SOURCES += %D%/elf.h %D%/elf_file.h %D%/elf.c %D%/module.c %D%/symbol.c %D%/symbol_table.h %D%/symbol_name.c %D%/symbol_index.h %D%/symbol_index.c
libprb_la_SOURCES += %D%/core_file.h %D%/core_file.c %D%/core_args.c %D%/core_text.c %D%/core.c %D%/unpack.h %D%/unpack.c %D%/debugger.c %D%/save.h %D%/save.c
