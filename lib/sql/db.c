/* The connection: SQLite in memory, read-only (authorize.c), bounded by limits and a progress
 * handler. */
#include "sql/db.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sql/dialect.h"
#include "sql/excerpt.h"

#define WARNING_LONGEST 400 /* bytes of a sentence */

/* ---- opening ---- */

/* SQLite declares these tables when they are first named, in a way that the authorizer refuses. */
static void declare_json_tables(sqlite3 *sqlite)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(sqlite, "SELECT 1 FROM json_each('[]'), json_tree('[]')", -1, &statement,
                           NULL) == SQLITE_OK)
        sqlite3_finalize(statement);
}

struct prb_db *prb_db_open_tables(struct prb_target *target, const struct prb_table *const *tables,
                                  size_t count, struct prb_error *err)
{
    PRB_AUTO(prb_db) struct prb_db *db = calloc(1, sizeof *db);
    if (!db)
        return PRB_NULL(prb_nomem(err));
    db->target = target;
    if (!(db->tables = calloc(count + 1, sizeof *db->tables)))
        return PRB_NULL(prb_nomem(err));
    for (size_t i = 0; i < count; i++)
        db->tables[i] = tables[i];
    db->table_count = db->constant_count = count;
    prb_settings_default(&db->settings);
    if (!prb_sqlite_open(&db->sqlite, err) || !prb_functions_register(db, err) ||
        !prb_vtab_register(db, err))
        return NULL;
    declare_json_tables(db->sqlite);
    prb_db_harden(db->sqlite);
    prb_db_authorize(db);
    return PRB_STEAL(db);
}

void prb_db_close(struct prb_db *db)
{
    if (!db)
        return;
    if (db->sqlite)
        sqlite3_close_v2(db->sqlite);
    for (size_t i = 0; i < db->source_count; i++)
        db->sources[i]->free(db->sources[i]);
    free(db->sources);
    free(db->tables);
    free(db);
}

void prb_db_watch(struct prb_db *db, bool (*go_on)(void *context), void *context)
{
    db->go_on = go_on;
    db->go_on_context = context;
}

void prb_db_reveal(struct prb_db *db, bool reveal) { db->settings.reveal_secrets = reveal; }

const char *prb_db_warning(const struct prb_db *db) { return db->warning[0] ? db->warning : NULL; }

static bool has_line(const char *lines, const char *line)
{
    size_t len = strlen(line);
    for (const char *at = lines; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, line, len) == 0 && (!at[len] || at[len] == '\n'))
            return true;
    }
    return false;
}

void prb_db_warn_args(struct prb_db *db, const char *format, va_list args)
{
    char line[WARNING_LONGEST];
    size_t used = strlen(db->warning);
    vsnprintf(line, sizeof line, format, args);
    for (char *end = line; (end = strchr(end, '\n'));)
        *end = ';';
    if (!line[0] || has_line(db->warning, line) || used + 1 + strlen(line) >= sizeof db->warning)
        return;
    snprintf(db->warning + used, sizeof db->warning - used, "%s%s", used ? "\n" : "", line);
}

void prb_db_warn(struct prb_db *db, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    prb_db_warn_args(db, format, args);
    va_end(args);
}

/* ---- running ---- */

struct run {
    struct prb_db *db;
    struct prb_dialect dialect;
    bool plan;        /* show what is fetched, instead of the rows */
    const char *text; /* the user's */
    size_t len;
    prb_row_fn *each;
    void *context;
    bool ended; /* each said so */
};

PRB_DEFINE_AUTO_PTR(stmt, sqlite3_stmt, (void)sqlite3_finalize)

static struct prb_value column_value(sqlite3_stmt *stmt, int column)
{
    struct prb_value value = {.type = PRB_NULL_VALUE};
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
        value.type = PRB_INTEGER;
        value.integer = sqlite3_column_int64(stmt, column);
        break;
    case SQLITE_FLOAT:
        value.type = PRB_REAL;
        value.real = sqlite3_column_double(stmt, column);
        break;
    case SQLITE_TEXT:
        value.type = PRB_TEXT;
        value.text = (const char *)sqlite3_column_text(stmt, column);
        break;
    case SQLITE_BLOB:
        value.type = PRB_BLOB;
        value.text = sqlite3_column_blob(stmt, column);
        break;
    }
    if (value.type == PRB_TEXT || value.type == PRB_BLOB)
        value.length = (size_t)sqlite3_column_bytes(stmt, column);
    if (!value.text)
        value.text = "";
    return value;
}

static bool give_row(const struct run *run, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    return !run->each || run->each(run->context, columns, names, row);
}

static bool step_all(struct run *run, sqlite3_stmt *stmt, int *rc_out, struct prb_error *err)
{
    int columns = sqlite3_column_count(stmt);
    PRB_AUTO_FREE const char **names = calloc((size_t)columns + 1, sizeof *names);
    PRB_AUTO_FREE struct prb_value *row = calloc((size_t)columns + 1, sizeof *row);
    if (!names || !row)
        return prb_nomem(err);
    for (int i = 0; i < columns; i++)
        names[i] = sqlite3_column_name(stmt, i);
    bool begun = false;
    /* The first step may fail (a target that is gone): the columns are reported once it has
     * not failed. */
    while ((*rc_out = sqlite3_step(stmt)) == SQLITE_ROW || *rc_out == SQLITE_DONE) {
        if (!begun && !give_row(run, (size_t)columns, names, NULL))
            run->ended = true;
        begun = true;
        if (*rc_out == SQLITE_DONE || run->ended)
            break;
        for (int i = 0; i < columns; i++)
            row[i] = column_value(stmt, i);
        run->ended = !give_row(run, (size_t)columns, names, row);
        if (run->ended)
            break;
    }
    return true;
}

/* SQLite has planned, and so said what it will read: it is fetched at once, before the first row. */
static bool fetch(struct prb_db *db, struct prb_error *err)
{
    db->view.pushed.fetched = db->view.pushed.count;
    for (size_t i = 0; i < db->source_count; i++)
        if (db->sources[i]->fetch && !db->sources[i]->fetch(db->sources[i], db, err))
            return false;
    return true;
}

static bool show_plan(struct run *run, struct prb_error *err)
{
    struct prb_db *db = run->db;
    for (size_t i = 0; i < db->source_count; i++)
        if (db->sources[i]->plan &&
            !db->sources[i]->plan(db->sources[i], db, run->each, run->context, err))
            return false;
    return true;
}

static bool run_in_view(struct run *run, const struct prb_statement *statement,
                        struct prb_error *err)
{
    struct prb_db *db = run->db;
    PRB_AUTO(stmt) sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v3(db->sqlite, statement->sql.data, (int)statement->sql.len, 0, &stmt,
                                NULL);
    if (rc != SQLITE_OK)
        return prb_db_failure(db, rc, run->text, run->len, statement, err);
    if (!stmt)
        return true;
    if (!sqlite3_stmt_readonly(stmt))
        return prb_query_fail(err, run->text, run->len, statement->offset,
                              "the statement would change something, and queries only read");
    if (!sqlite3_stmt_isexplain(stmt) && !fetch(db, err))
        return false;
    if (run->plan)
        return show_plan(run, err);
    if (!step_all(run, stmt, &rc, err))
        return false;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ||
           prb_db_failure(db, rc, run->text, run->len, statement, err);
}

static bool run_sql(struct run *run, const struct prb_statement *statement, struct prb_error *err)
{
    if (!prb_vtab_declare(run->db, statement->sql.data, statement->sql.len, err) ||
        !prb_view_begin(run->db, err))
        return false;
    if (run->db->fetches)
        run->db->view.time = run->dialect.now;
    prb_pushed_read(&run->db->view.pushed, statement->sql.data, statement->sql.len);
    bool good = run_in_view(run, statement, err);
    prb_view_end(run->db);
    return good;
}

/* SQL of our own for a statement; %Q as sqlite3_mprintf takes it. */
static bool own_sql(struct prb_statement *statement, struct prb_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *sql = sqlite3_vmprintf(format, args);
    va_end(args);
    prb_buf_adds(&statement->sql, sql ? sql : "");
    sqlite3_free(sql);
    return (sql && prb_buf_ok(&statement->sql)) || prb_nomem(err);
}

static bool describe(struct run *run, struct prb_statement *statement, struct prb_error *err)
{
    int index = prb_db_find_table(run->db, statement->schema, statement->name);
    if (index < 0)
        return prb_db_no_table(run->db, run->text, run->len, statement->name_offset,
                               statement->schema, statement->name, err);
    const struct prb_table *table = run->db->tables[index];
    const char *columns = statement->kind == PRB_STATEMENT_DESCRIBE
                              ? "SELECT column_name, data_type, unit, doc, is_argument FROM "
                                "information_schema.columns"
                              : "SELECT table_name, definition FROM information_schema.tables";
    return own_sql(statement, err, "%s WHERE table_schema = %Q AND table_name = %Q", columns,
                   table->schema, table->name) &&
           run_sql(run, statement, err);
}

static bool find_setting(struct run *run, const struct prb_statement *statement, int *out,
                         struct prb_error *err)
{
    *out = prb_settings_find(statement->name);
    if (*out >= 0)
        return true;
    prb_query_fail(err, run->text, run->len, statement->name_offset, "no such setting: %s",
                   statement->name);
    const char *nearest = prb_settings_nearest(statement->name);
    return nearest ? prb_error_remedy(err, "did you mean %s?", nearest)
                   : prb_error_remedy(err, "SHOW ALL lists the settings");
}

static bool set(struct run *run, struct prb_statement *statement, struct prb_error *err)
{
    int index;
    char must[100];
    if (!find_setting(run, statement, &index, err))
        return false;
    if (prb_settings_set(&run->db->settings, (size_t)index, statement->value, must, sizeof must))
        return true;
    return prb_query_fail(err, run->text, run->len, statement->value_offset, "%s must be %s",
                          statement->name, must);
}

static bool show_setting(struct run *run, struct prb_statement *statement, struct prb_error *err)
{
    int index;
    return find_setting(run, statement, &index, err) &&
           own_sql(statement, err,
                   "SELECT name, value FROM information_schema.settings WHERE "
                   "name = %Q",
                   prb_settings_get(&run->db->settings, (size_t)index).name) &&
           run_sql(run, statement, err);
}

static bool run_statement(struct run *run, struct prb_statement *statement, struct prb_error *err)
{
    if (statement->kind != PRB_STATEMENT_EMPTY && !prb_db_refresh(run->db, err))
        return false;
    switch (statement->kind) {
    case PRB_STATEMENT_EMPTY:
        return true;
    case PRB_STATEMENT_QUERY:
        return run_sql(run, statement, err);
    case PRB_STATEMENT_SHOW_TABLES:
        return own_sql(statement, err,
                       "SELECT table_schema, table_name, doc FROM information_schema.tables WHERE "
                       "table_schema <> 'information_schema'") &&
               run_sql(run, statement, err);
    case PRB_STATEMENT_DESCRIBE:
    case PRB_STATEMENT_SHOW_CREATE:
        return describe(run, statement, err);
    case PRB_STATEMENT_SHOW_FUNCTIONS:
        return own_sql(statement, err,
                       "SELECT form, kind, doc FROM information_schema.functions") &&
               run_sql(run, statement, err);
    case PRB_STATEMENT_SHOW_SETTINGS:
        return own_sql(statement, err,
                       "SELECT name, value, unit, doc FROM "
                       "information_schema.settings") &&
               run_sql(run, statement, err);
    case PRB_STATEMENT_SHOW_SETTING:
        return show_setting(run, statement, err);
    case PRB_STATEMENT_SET:
        return set(run, statement, err);
    }
    return prb_fail(err, PRB_INTERNAL, "statement kind %d", (int)statement->kind);
}

/* To the microsecond, as a constant in the text has it. */
static double time_of_statement(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)((int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000) / 1e6;
}

static bool run_all(struct run *run, struct prb_error *err)
{
    size_t offset = 0;
    bool any = false;
    do {
        PRB_AUTO(prb_statement) struct prb_statement statement = {0};
        if (run->db->fetches)
            run->dialect = (struct prb_dialect){.now = time_of_statement(), .global = true};
        if (!prb_dialect_next(&run->dialect, run->text, run->len, &offset, &statement, err) ||
            !run_statement(run, &statement, err))
            return false;
        any = any || statement.kind != PRB_STATEMENT_EMPTY;
    } while (offset < run->len && !run->ended);
    if (any)
        return true;
    prb_fail(err, PRB_QUERY, "the SQL text is empty");
    return prb_error_remedy(err, "try: SHOW TABLES");
}

static bool query(struct run *run, struct prb_error *err)
{
    struct prb_db *db = run->db;
    if (db->busy)
        return prb_fail(err, PRB_BUSY, "this connection is running a query");
    db->busy = true;
    db->warning[0] = '\0';
    bool good = run_all(run, err);
    db->busy = false;
    return good;
}

bool prb_db_query(struct prb_db *db, const char *sql, prb_row_fn *each, void *context,
                  struct prb_error *err)
{
    struct run run = {.db = db, .text = sql, .len = strlen(sql), .each = each, .context = context};
    return query(&run, err);
}

bool prb_db_plan(struct prb_db *db, const char *sql, prb_row_fn *each, void *context,
                 struct prb_error *err)
{
    struct run run = {
        .db = db, .plan = true, .text = sql, .len = strlen(sql), .each = each, .context = context};
    return query(&run, err);
}
