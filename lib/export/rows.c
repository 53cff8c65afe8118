/* Rows of a table by the names of columns, whichever of them there are. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "export/export.h"

#define MISSING "NULL"

/* ---- which columns there are ---- */

static bool take_column(void *context, size_t count, const char *const *names,
                        const struct prb_value *row)
{
    struct prb_export *export = context;
    (void)count, (void)names;
    if (!row)
        return true;
    if (!PRB_GROW(export->columns, export->column_count, export->column_cap)) {
        export->failed = true;
        return false;
    }
    struct prb_export_column *column = &export->columns[export->column_count++];
    column->table = prb_arena_strdup(&export->arena, row[0].text);
    column->name = prb_arena_strdup(&export->arena, row[1].text);
    column->number = row[2].integer;
    export->failed |= !column->table || !column->name;
    return !export->failed;
}

bool prb_export_read_columns(struct prb_export *export, struct prb_error *err)
{
    static const char sql[] = "SELECT table_schema || '.' || table_name, column_name, "
                              "data_type IN ('REAL', 'INTEGER') FROM information_schema.columns "
                              "WHERE NOT is_argument AND (table_schema, table_name) IN "
                              "(SELECT table_schema, table_name FROM information_schema.tables)";
    return prb_db_query(export->db, sql, take_column, export, err) &&
           (!export->failed || prb_nomem(err));
}

bool prb_export_has(const struct prb_export *export, const char *table, const char *column)
{
    for (size_t i = 0; i < export->column_count; i++)
        if (strcmp(export->columns[i].table, table) == 0 &&
            (!column || strcmp(export->columns[i].name, column) == 0))
            return true;
    return false;
}

/* Of "a/b/c" the first that the table has, as SQL; NULL: none. */
static const char *find(const struct prb_export *export, const char *table, const char *names,
                        char *out, size_t cap)
{
    for (; *names; names += *names == '/') {
        size_t length = strcspn(names, "/");
        snprintf(out, cap, "%.*s", (int)length, names);
        if (prb_export_has(export, table, out)) {
            snprintf(out, cap, "\"%.*s\"", (int)length, names);
            return out;
        }
        names += length;
    }
    return NULL;
}

/* ---- reading ---- */

struct reading {
    struct prb_export *export;
    prb_export_row_fn *each;
    void *context;
};

/* Of a job some tables say the process, of its host, and some only the rank. */
static bool is_of(const struct prb_export_process *process, const char *host, int64_t pid,
                  int64_t rank)
{
    const char *known = process->host;
    if (known && host ? strcmp(known, host) != 0 : known != host)
        return false;
    if (process->pid && pid)
        return process->pid == pid;
    return process->rank == rank && (rank >= 0 || process->pid == pid);
}

/* host: NULL where the table does not say it. */
static struct prb_export_process *process_of(struct prb_export *export, const char *host,
                                             int64_t pid, int64_t rank)
{
    for (size_t i = export->process_count; i-- > 0;)
        if (is_of(&export->processes[i], host, pid, rank)) {
            if (pid)
                export->processes[i].pid = (pid_t)pid;
            return &export->processes[i];
        }
    if (!export->processes) /* once: others point to them */
        export->processes = calloc(PRB_EXPORT_PROCESSES_MAX, sizeof *export->processes);
    if (!export->processes || export->process_count == PRB_EXPORT_PROCESSES_MAX) {
        export->failed = true;
        return NULL;
    }
    if (host && !(host = prb_arena_strdup(&export->arena, host))) {
        export->failed = true;
        return NULL;
    }
    struct prb_export_process *process = &export->processes[export->process_count++];
    *process = (struct prb_export_process){.pid = (pid_t)pid,
                                           .host = host,
                                           .rank = (int)rank,
                                           .track_of = PRB_TRACE_NONE,
                                           .step_began = INT64_MIN};
    return process;
}

static bool take_row(void *context, size_t count, const char *const *names,
                     const struct prb_value *row)
{
    struct reading *reading = context;
    struct prb_export *export = reading->export;
    (void)count, (void)names;
    if (!row)
        return true;
    int64_t pid = row[0].type == PRB_INTEGER ? row[0].integer : export->options->pid;
    int64_t rank = row[1].type == PRB_INTEGER ? row[1].integer : export->options->rank;
    rank = rank >= 0 && rank <= INT_MAX ? rank : -1;
    struct prb_export_process *process = process_of(export, prb_export_text(&row[2]), pid, rank);
    return process && reading->each(export, process, row + 3, reading->context);
}

bool prb_export_rows(struct prb_export *export, const char *table, const char *const *columns,
                     bool newest, prb_export_row_fn *each, void *context, struct prb_error *err)
{
    struct reading reading = {export, each, context};
    PRB_AUTO(prb_buf) struct prb_buf sql = {0};
    char name[80], time[80];
    if (!find(export, table, columns[0], time, sizeof time))
        return true;
    prb_buf_addf(&sql, "SELECT %s, %s, %s", prb_export_has(export, table, "pid") ? "pid" : MISSING,
                 prb_export_has(export, table, "rank") ? "rank" : MISSING,
                 prb_export_has(export, table, "host") ? "host" : MISSING);
    for (size_t i = 0; columns[i]; i++) {
        const char *found = find(export, table, columns[i], name, sizeof name);
        prb_buf_addf(&sql, ", %s", found ? found : MISSING);
    }
    prb_buf_addf(&sql, " FROM %s", table);
    if (!newest)
        prb_buf_addf(&sql, " WHERE %s >= %.17g", time, export->since - PRB_TRACE_SAME_NS * 1e-9);
    prb_buf_addf(&sql, " ORDER BY %s%s", time, newest ? " DESC" : "");
    if (!prb_buf_ok(&sql))
        return prb_nomem(err);
    if (!prb_db_query(export->db, sql.data, take_row, &reading, err))
        return false;
    const char *warning = prb_db_warning(export->db);
    if (warning && !export->out->note[0])
        snprintf(export->out->note, sizeof export->out->note, "%s", warning);
    return !export->failed || prb_nomem(err);
}

double prb_export_real(const struct prb_value *value)
{
    return value->type == PRB_REAL      ? value->real
           : value->type == PRB_INTEGER ? (double)value->integer
                                        : NAN;
}

int64_t prb_export_integer(const struct prb_value *value)
{
    return value->type == PRB_INTEGER ? value->integer : INT64_MIN;
}

const char *prb_export_text(const struct prb_value *value)
{
    return value->type == PRB_TEXT && *value->text ? value->text : NULL;
}
