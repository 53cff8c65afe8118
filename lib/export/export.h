/*
 * What a job recorded, as files of other programs: the rows of its tables, read by SQL, so that a
 * live process, several, an ended one and the store serve alike.
 *
 * To add a format: NAME.c with `const struct prb_exporter prb_exporter_NAME`; the file in
 * EXPORT_FORMATS (local.mk), at its place in the help; a reader of it in tests/export.
 * To add a table to timelines: its file in EXPORT_PARTS (local.mk) with a prb_export_part_fn, or,
 * when its columns are values over time, a line in counters.c.
 */
#ifndef PRB_EXPORT_EXPORT_H
#define PRB_EXPORT_EXPORT_H

#include "base/hash_map.h"
#include "trace/trace.h"

#define PRB_EXPORT_PROCESSES_MAX 8192
#define PRB_EXPORT_COLUMNS_MAX 32 /* that one part reads of a table */

struct prb_export_process {
    pid_t pid;          /* 0: not known yet */
    const char *host;   /* that it runs on; NULL: this one */
    int rank;           /* -1: none */
    uint32_t track_of;  /* its number in the trace */
    int64_t step;       /* python.steps: of its last row, and when that step began */
    int64_t step_began; /* INT64_MIN: none yet */
};

/* A column of some table, as information_schema has it. */
struct prb_export_column {
    const char *table, *name; /* table: "schema.name" */
    bool number;
};

struct prb_export {
    struct prb_db *db;
    const struct prb_export_options *options;
    struct prb_exported *out;
    double since; /* s since the epoch: rows before are left out */
    double until; /* the time of the last step's row when since was found; later ones are none */
    struct prb_export_column *columns;
    size_t column_count, column_cap;
    struct prb_export_process *processes;
    size_t process_count;
    struct prb_trace trace;
    struct prb_hash_map tracks; /* 1 + number, by process, kind and thread */
    struct prb_arena arena;
    bool failed; /* out of memory */
};

struct prb_exporter {
    struct prb_export_format description; /* first */
    /* Write to out, whose errors the caller checks; or, for those that make a folder, below path. */
    bool (*write)(struct prb_export *export, FILE *out, struct prb_error *err);
    bool (*write_folder)(struct prb_export *export, const char *path, struct prb_error *err);
};

#define FORMAT(name) extern const struct prb_exporter prb_exporter_##name;
#include "export/formats.inc"
#undef FORMAT

/* ---- rows.c ---- */

/* The tables and columns that there are. */
bool prb_export_read_columns(struct prb_export *export, struct prb_error *err);
/* table: "schema.name". */
bool prb_export_has(const struct prb_export *export, const char *table, const char *column);

/* row: the values of the columns asked for; of those that are not there NULL.  process: whose. */
typedef bool prb_export_row_fn(struct prb_export *export, struct prb_export_process *process,
                               const struct prb_value *row, void *context);
/*
 * The rows of a table since export->since, by time; none when there is no such table.  columns ends
 * with NULL; "a/b": the first of them that is there.  The first column is the row's time.  newest:
 * the last ones first, of all times, until each returns false.
 */
bool prb_export_rows(struct prb_export *export, const char *table, const char *const *columns,
                     bool newest, prb_export_row_fn *each, void *context, struct prb_error *err);
/* NAN, INT64_MIN, NULL: it is not one. */
double prb_export_real(const struct prb_value *value);
int64_t prb_export_integer(const struct prb_value *value);
const char *prb_export_text(const struct prb_value *value);

/* What the program logs; the names of its columns that are numbers over time (counters.c), at most
 * PRB_EXPORT_COLUMNS_MAX. */
#define PRB_EXPORT_LOGS "python.training_logs"
size_t prb_export_metrics(const struct prb_export *export, const char **out);

/* ---- timelines: timeline.c and the parts ---- */

enum prb_export_track {
    PRB_EXPORT_STEPS = 1,
    PRB_EXPORT_MODULES,
    PRB_EXPORT_COLLECTIVES,
    PRB_EXPORT_SPANS,
    PRB_EXPORT_COUNTERS,
};

/* The track of a process; made when first asked for, with this name.  thread: 0: of none. */
uint32_t prb_export_track_of(struct prb_export *export, const struct prb_export_process *process,
                             enum prb_export_track kind, uint64_t thread, const char *name);
/* A counter's. */
uint32_t prb_export_counter_of(struct prb_export *export, const struct prb_export_process *process,
                               const char *name, const char *unit);
/* A slice from seconds since the epoch on. */
uint32_t prb_export_slice(struct prb_export *export, uint32_t track, const char *name, double begin,
                          double duration, uint32_t depth);
/* Notes of the last slice, when the value is there. */
void prb_export_note(struct prb_export *export, const char *key, const struct prb_value *value);

/* One part of a timeline: the rows of one or two tables as slices and values. */
typedef bool prb_export_part_fn(struct prb_export *export, struct prb_error *err);
#define PART(name) prb_export_part_fn prb_export_##name;
#include "export/parts.inc"
#undef PART

/* All parts: export->trace is then whole. */
bool prb_export_timeline(struct prb_export *export, struct prb_error *err);

#endif
