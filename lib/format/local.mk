libprb_la_SOURCES += %D%/json.h %D%/stacks_json.c %D%/tasks_json.c
dist_pkgdata_DATA += %D%/backtrace.schema.json %D%/tasks.schema.json
