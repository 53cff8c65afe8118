/*
 * A database connection inside the library: SQLite, the tables, the settings, and the view of the
 * running statement.
 */
#ifndef PRB_SQL_DB_H
#define PRB_SQL_DB_H

#include "base/buf.h"
#include "sql/pushed.h"
#include "sql/rows.h"
#include "sql/sqlite.h"
#include "sql/table.h"

/* What SET changes; see settings.c for names, bounds and docs. */
struct prb_settings {
    bool reveal_secrets;
    bool native_lines;    /* file and line of native frames from debug information */
    int64_t repr_limit;   /* characters */
    double query_timeout; /* s */
    /* Of tables that are fetched from the ranks of a job. */
    double cluster_query_budget; /* s */
    int64_t cluster_max_rows, cluster_max_bytes;
};

/* What one statement saw: every table is filled once, the stacks are taken once. */
struct prb_statement_view {
    double time;              /* s since the epoch; 0: not asked yet */
    unsigned needs;           /* PRB_NEED_* of all tables, known when the statement is prepared */
    uint64_t *wanted;         /* for each table: its columns that the statement uses */
    struct prb_pushed pushed; /* what it asks of tables whose rows are fetched */
    struct prb_rows *rows;    /* made so far; freed when the statement has ended */
    size_t row_sets;
    struct prb_stacks *stacks; /* or NULL */
    void *shared;              /* prb_rows_shared, or NULL */
    void (*shared_free)(void *shared);
    bool failed; /* a fill function failed: error */
    struct prb_error error;
    double deadline; /* monotonic s; passed: timed_out */
    bool timed_out;
    double asked; /* monotonic s: when the watcher was asked last */
    bool stopped; /* it said no */
};

struct prb_db {
    sqlite3 *sqlite;
    struct prb_target *target;         /* borrowed, may be NULL */
    const struct prb_profile *profile; /* borrowed: a saved one, or NULL */
    bool of_several;                   /* its rows are shown beside those of other processes */
    const char *job; /* its rows are those of a rank, asked for with others of this job; or NULL */
    bool job_elsewhere; /* another rank of this machine has the rows of the job as a whole */
    struct prb_table_source *recorded; /* what has the tables that processes recorded, or NULL */
    bool ended;                        /* it has the tables that an ended process left */
    const struct prb_table **tables;   /* the constant ones, then those of sources */
    size_t table_count, constant_count;
    struct prb_table_source **sources; /* owned */
    size_t source_count;
    bool fetches; /* a source has tables that are fetched */
    struct prb_settings settings;
    struct prb_statement_view view;
    const char *refused;          /* what the authorizer refused last, or NULL */
    char warning[2000];           /* of the last query, a line each, or "" */
    bool busy;                    /* a query runs */
    bool (*go_on)(void *context); /* prb_db_watch, or NULL */
    void *go_on_context;
    struct prb_stacks *(*take_stacks)(struct prb_target *target,
                                      const struct prb_stack_options *options,
                                      struct prb_error *err); /* prb_stacks_take, or a test's */
};

/* prb_db_open with other tables; tables is borrowed. */
struct prb_db *prb_db_open_tables(struct prb_target *target, const struct prb_table *const *tables,
                                  size_t count, struct prb_error *err);
PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)

/* One more sentence of prb_db_warning, unless it is there or has no room. */
void prb_db_warn(struct prb_db *db, const char *format, ...) __attribute__((format(printf, 2, 3)));
void prb_db_warn_args(struct prb_db *db, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* authorize.c: only reading is allowed from here on; SQLite's limits and defences. */
void prb_db_authorize(struct prb_db *db);
void prb_db_harden(sqlite3 *sqlite);

/* ---- tables.c ---- */
/* Index of a table, the schema may be NULL or "" (then the first of that name); -1. */
int prb_db_find_table(const struct prb_db *db, const char *schema, const char *name);
/* Whether it is about the connection's own tables (SHOW TABLES), not about a process. */
bool prb_table_is_schema(const struct prb_table *table);
/* Tables that are found at run time, behind those of the sources before.  source is taken, also on
 * failure; NULL fails, and err is left as it is. */
bool prb_db_add_source(struct prb_db *db, struct prb_table_source *source, struct prb_error *err);
/* Before a statement: make the tables of the sources those of now. */
bool prb_db_refresh(struct prb_db *db, struct prb_error *err);

/* view.c: the running statement's. */
bool prb_view_begin(struct prb_db *db, struct prb_error *err);
void prb_view_end(struct prb_db *db);
double prb_db_time(struct prb_db *db);
const struct prb_stacks *prb_db_stacks(struct prb_db *db, struct prb_error *err);
/* The rows of a table for these PRB_ARGUMENTS_MAX arguments, and at least those within the times; the
 * view's. */
#define PRB_ROW_SETS_MAX 4096
#define PRB_ROW_BITS 51     /* of a rowid; above them the number of the row set */
#define PRB_TIME_SETS_MAX 8 /* of one table: a join may ask for other times in each row */
struct prb_rows *prb_db_rows(struct prb_db *db, size_t table, const struct prb_argument *arguments,
                             const struct prb_times *times, struct prb_error *err);

/* failure.c: why SQLite refused a statement, in the user's text, with a remedy.  Returns false. */
struct prb_statement;
bool prb_db_failure(struct prb_db *db, int rc, const char *text, size_t len,
                    const struct prb_statement *statement, struct prb_error *err);
bool prb_db_no_table(struct prb_db *db, const char *text, size_t len, size_t offset,
                     const char *schema, const char *name, struct prb_error *err);

/* vtab.c: the one module, and the schemas of all tables. */
bool prb_vtab_register(struct prb_db *db, struct prb_error *err);
/* The schemas of the tables from first on. */
bool prb_vtab_attach(struct prb_db *db, size_t first, struct prb_error *err);
/* Before a statement: declare the tables whose names stand in it.  All tables together would cost
 * more than most queries. */
bool prb_vtab_declare(struct prb_db *db, const char *sql, size_t len, struct prb_error *err);
bool prb_vtab_drop(struct prb_db *db, size_t first, struct prb_error *err);
/* functions.c, aggregate.c */
bool prb_functions_register(struct prb_db *db, struct prb_error *err);
struct prb_function_doc {
    const char *form, *kind, *doc;
};
const struct prb_function_doc *prb_function_docs(size_t *count_out);
bool prb_aggregates_register(sqlite3 *sqlite, struct prb_error *err);

/* settings.c */
struct prb_setting {
    const char *name, *unit, *doc;
    char value[64];
};
void prb_settings_default(struct prb_settings *settings);
size_t prb_settings_count(void);
struct prb_setting prb_settings_get(const struct prb_settings *settings, size_t index);
/* Index, or -1. */
int prb_settings_find(const char *name);
/* The name that this one was meant to be, or NULL. */
const char *prb_settings_nearest(const char *name);
/* False: the value is none for it; must_out (cap bytes) says what it must be. */
bool prb_settings_set(struct prb_settings *settings, size_t index, const char *value,
                      char *must_out, size_t cap);

#endif
