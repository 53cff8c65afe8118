# What is printed, for every front end: rows, columns, JSON, text that is safe for a terminal.
pkginclude_HEADERS += %D%/format.h
libprb_la_SOURCES += %D%/format.h %D%/piece.h %D%/text.c %D%/json.c %D%/grid.h %D%/grid.c %D%/rows.c
# What is measured of processes, as Prometheus takes it.
libprb_la_SOURCES += %D%/metrics.h %D%/metrics.c
# Results as JSON.
libprb_la_SOURCES += %D%/json.h %D%/stacks_json.c %D%/tasks_json.c %D%/processes_json.c %D%/crash_json.c
dist_pkgdata_DATA += %D%/backtrace.schema.json %D%/tasks.schema.json
# What a process of ours in the background has to say.
libprb_la_SOURCES += %D%/log_file.h %D%/log_file.c
