/*
 * Each process has a connection of its own, whose rows are copied.  A statement of the outer
 * connection is one statement of each of them, too: they see one moment each.
 */
#include "sql/several.h"

#include <string.h>

#define COLUMNS_MAX 63 /* SQLite reports for that many whether they are used */
enum { NOT_THERE = -1 };

struct process {
    struct prb_db *db;
    pid_t pid;
    int rank; /* -1: none */
};

struct merged {
    struct prb_table table; /* first */
    struct prb_several *several;
    size_t own; /* columns before those of the processes: rank and pid */
    struct prb_column columns[COLUMNS_MAX + 1];
    int index[]; /* of the table in each process's connection */
};

struct prb_several {
    struct prb_table_source source; /* first */
    struct process *processes;
    size_t count;
    bool listed;
    const struct prb_table **tables; /* each a struct merged */
    size_t table_count;
};

/* ---- rows ---- */

static void end_views(void *context)
{
    struct prb_several *several = context;
    for (size_t i = 0; i < several->count; i++)
        prb_view_end(several->processes[i].db);
}

/* The outer statement's needs, settings and time are those of each process's statement. */
static bool begin_views(struct prb_several *several, struct prb_db *outer, struct prb_error *err)
{
    if (outer->view.shared)
        return true;
    outer->view.shared = several;
    outer->view.shared_free = end_views;
    for (size_t i = 0; i < several->count; i++) {
        struct prb_db *db = several->processes[i].db;
        db->settings = outer->settings;
        if (!prb_view_begin(db, err))
            return false;
        db->view.needs = outer->view.needs;
        db->view.time = prb_db_time(outer);
    }
    return true;
}

static void add_value(struct prb_rows *out, const struct prb_value *value)
{
    if (value->type == PRB_INTEGER)
        prb_row_int(out, value->integer);
    else if (value->type == PRB_REAL)
        prb_row_real(out, value->real);
    else if (value->type == PRB_TEXT)
        prb_row_textn(out, value->text, value->length);
    else if (value->type == PRB_BLOB)
        prb_row_blob(out, value->text, value->length);
    else
        prb_row_null(out);
}

static void add_rows(struct prb_rows *out, const struct process *process, const struct prb_rows *in)
{
    const struct merged *merged = (const struct merged *)out->table;
    int from[COLUMNS_MAX];
    for (size_t c = merged->own; c < out->visible; c++)
        from[c] = prb_table_column(in->table, merged->columns[c].name);
    for (size_t row = 0; row < in->count; row++) {
        prb_row_begin(out);
        for (size_t c = 0; c < merged->own; c++) {
            if (strcmp(merged->columns[c].name, "pid") == 0)
                prb_row_int(out, process->pid);
            else if (process->rank >= 0)
                prb_row_int(out, process->rank);
            else
                prb_row_null(out);
        }
        for (size_t c = merged->own; c < out->visible; c++) {
            bool has = from[c] >= 0 && (size_t)from[c] < in->visible;
            struct prb_value value = has ? prb_rows_value(in, row, (size_t)from[c])
                                         : (struct prb_value){.type = PRB_NULL_VALUE};
            add_value(out, &value);
        }
    }
}

static uint64_t wanted_of(const struct prb_rows *out, const struct prb_table *table)
{
    const struct merged *merged = (const struct merged *)out->table;
    uint64_t wanted = 0;
    for (size_t c = merged->own; merged->columns[c].name; c++) {
        int column = prb_table_column(table, merged->columns[c].name);
        if (column >= 0 && prb_column_in(out->wanted, c))
            wanted |= (uint64_t)1 << column;
    }
    return wanted;
}

/* What they say: a note that several have is told once. */
static void tell_notes(struct prb_rows *out, const struct merged *merged)
{
    const struct prb_several *several = merged->several;
    for (size_t i = 0; i < several->count; i++) {
        const char *note = several->processes[i].db->warning;
        PRB_AUTO(prb_buf) struct prb_buf pids = {0};
        size_t first = several->count, same = 0;
        for (size_t k = 0; k < several->count; k++) {
            const struct process *process = &several->processes[k];
            if (merged->index[k] == NOT_THERE || strcmp(process->db->warning, note) != 0)
                continue;
            first = k < first ? k : first;
            prb_buf_addf(&pids, "%s%d", same++ ? ", " : "", (int)process->pid);
        }
        if (*note && first == i && prb_buf_ok(&pids))
            prb_rows_warn(out, "process%s %.120s: %s", same > 1 ? "es" : "", pids.data, note);
    }
}

/* One that ended or cannot be read is left out; all of them: the statement fails. */
static bool fill(struct prb_rows *out, struct prb_error *err)
{
    const struct merged *merged = (const struct merged *)out->table;
    struct prb_several *several = merged->several;
    struct prb_error why = {0};
    size_t read = 0, asked = 0, left_out = 0;
    PRB_AUTO(prb_buf) struct prb_buf pids = {0};
    if (!begin_views(several, out->db, err))
        return false;
    for (size_t i = 0; i < several->count; i++) {
        const struct process *process = &several->processes[i];
        struct prb_db *db = process->db;
        int index = merged->index[i];
        if (index == NOT_THERE)
            continue;
        asked++;
        db->warning[0] = '\0';
        db->view.wanted[index] |= wanted_of(out, db->tables[index]);
        const struct prb_rows *in =
            prb_db_rows(db, (size_t)index, out->arguments, &out->times, &why);
        if (!in) {
            prb_buf_addf(&pids, "%s%d", left_out++ ? ", " : "", (int)process->pid);
            db->warning[0] = '\0';
            continue;
        }
        add_rows(out, process, in);
        read++;
    }
    tell_notes(out, merged);
    if (left_out && prb_buf_ok(&pids))
        prb_rows_warn(out, "left out: process%s %.120s: %s", left_out > 1 ? "es" : "", pids.data,
                      why.text);
    if (read || !asked)
        return true;
    if (err)
        *err = why;
    return false;
}

/* ---- tables ---- */

static struct merged *find(const struct prb_several *several, const struct prb_table *table)
{
    for (size_t i = 0; i < several->table_count; i++)
        if (strcmp(several->tables[i]->name, table->name) == 0 &&
            strcmp(several->tables[i]->schema, table->schema) == 0)
            return (struct merged *)several->tables[i];
    return NULL;
}

static void insert(struct merged *merged, size_t at, const struct prb_column *column)
{
    size_t count = 0;
    while (merged->columns[count].name)
        count++;
    if (count >= COLUMNS_MAX)
        return;
    memmove(&merged->columns[at + 1], &merged->columns[at],
            (count - at + 1) * sizeof *merged->columns);
    merged->columns[at] = *column;
}

/* The columns that are not there yet: visible ones before the arguments. */
static void add_columns(struct merged *merged, const struct prb_table *table)
{
    for (const struct prb_column *column = table->columns; column->name; column++) {
        size_t end = prb_table_visible(&merged->table);
        while (column->hidden && merged->columns[end].name)
            end++;
        if (prb_table_column(&merged->table, column->name) < 0)
            insert(merged, end, column);
    }
}

static struct merged *add_table(struct prb_several *several, const struct prb_table *table)
{
    static const struct prb_column own[] = {
        {.name = "rank", .type = PRB_INTEGER, .doc = "of the process in its job"},
        {.name = "pid", .type = PRB_INTEGER, .unit = "id", .doc = "of the process"},
    };
    struct merged *merged = calloc(1, sizeof *merged + several->count * sizeof *merged->index);
    const struct prb_table **tables =
        reallocarray(several->tables, several->table_count + 1, sizeof *tables);
    if (tables)
        several->tables = tables;
    if (!merged || !tables) {
        free(merged);
        return NULL;
    }
    merged->table = *table;
    merged->table.columns = merged->columns;
    merged->table.needs_target = merged->table.recorded = false; /* the processes have their own */
    merged->table.fill = fill;
    merged->several = several;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (prb_table_column(table, own[i].name) < 0)
            merged->columns[merged->own++] = own[i];
    for (size_t i = 0; i < several->count; i++)
        merged->index[i] = NOT_THERE;
    tables[several->table_count++] = &merged->table;
    return merged;
}

static void forget_tables(struct prb_several *several)
{
    for (size_t i = 0; i < several->table_count; i++)
        free((struct merged *)several->tables[i]);
    several->table_count = 0;
}

static bool changed(struct prb_table_source *source)
{
    struct prb_several *several = (struct prb_several *)source;
    bool any = !several->listed;
    for (size_t i = 0; i < several->count; i++) {
        struct prb_db *db = several->processes[i].db;
        for (size_t k = 0; k < db->source_count; k++)
            any = db->sources[k]->changed(db->sources[k]) || any;
    }
    return any;
}

static bool list(struct prb_table_source *source, const struct prb_table *const **out,
                 size_t *count_out, struct prb_error *err)
{
    struct prb_several *several = (struct prb_several *)source;
    forget_tables(several);
    for (size_t i = 0; i < several->count; i++) {
        struct prb_db *db = several->processes[i].db;
        if (!prb_db_refresh(db, err))
            return false;
        for (size_t k = 0; k < db->table_count; k++) {
            const struct prb_table *table = db->tables[k];
            struct merged *merged = find(several, table);
            if (prb_table_is_schema(table))
                continue; /* the outer connection has its own */
            if (!merged && !(merged = add_table(several, table)))
                return prb_nomem(err);
            add_columns(merged, table);
            merged->index[i] = (int)k;
        }
    }
    several->listed = true;
    *out = several->tables;
    *count_out = several->table_count;
    return true;
}

/* ---- making ---- */

void prb_several_free(struct prb_several *several)
{
    if (!several)
        return;
    forget_tables(several);
    for (size_t i = 0; i < several->count; i++)
        prb_db_close(several->processes[i].db);
    free(several->processes);
    free(several->tables);
    free(several);
}

static void free_source(struct prb_table_source *source)
{
    prb_several_free((struct prb_several *)source);
}

struct prb_several *prb_several_new(size_t count, struct prb_error *err)
{
    PRB_AUTO(prb_several) struct prb_several *several = calloc(1, sizeof *several);
    if (!several || !(several->processes = calloc(count + 1, sizeof *several->processes)))
        return PRB_NULL(prb_nomem(err));
    several->source =
        (struct prb_table_source){.changed = changed, .list = list, .free = free_source};
    return PRB_STEAL(several);
}

void prb_several_add(struct prb_several *several, struct prb_db *db, pid_t pid, int rank)
{
    db->of_several = true;
    several->processes[several->count++] = (struct process){db, pid, rank};
}

struct prb_table_source *prb_several_source(struct prb_several *several)
{
    return several ? &several->source : NULL;
}
