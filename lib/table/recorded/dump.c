/*
 * Tables of a crash dump: the rows that lib/crash/rings.c saved.  The file's bytes are hostile:
 * every length is checked before it is used.
 */
#include "table/recorded/dump.h"

#include <string.h>

#include "proc/source.h"
#include "ring/columns.h"
#include "table/recorded/live.h"
#include "table/recorded/names.h"

#define TABLES_MAX 64

struct dumped_table {
    struct prb_table table; /* first */
    char *head;             /* the lines of columns, cut into words */
    struct prb_ring_column ring[PRB_RING_COLUMNS_MAX];
    struct prb_column columns[PRB_RING_COLUMNS_MAX + 1];
    size_t count;
    const char *rows; /* borrowed from the process's text */
    size_t rows_len;
};

struct dumped_tables {
    struct prb_table_source source; /* first */
    const struct prb_table *tables[TABLES_MAX];
    size_t count;
    bool listed;
};

static const struct {
    const char *word;
    enum prb_ring_type type;
} types[] = {{"integer", PRB_RING_INTEGER},
             {"real", PRB_RING_REAL},
             {"text", PRB_RING_TEXT},
             {"boolean", PRB_RING_BOOLEAN},
             {"time", PRB_RING_TIME}};

/* ---- rows ---- */

/* One row's values from its bytes; false: they contradict themselves. */
static bool unpack(const struct dumped_table *table, const char *at, size_t len,
                   struct prb_ring_value *values)
{
    size_t fixed = (1 + table->count) * sizeof(uint64_t), used = fixed;
    uint64_t nulls;
    if (len < fixed)
        return false;
    memcpy(&nulls, at, sizeof nulls);
    for (size_t i = 0; i < table->count; i++) {
        int64_t word;
        memcpy(&word, at + (1 + i) * sizeof word, sizeof word);
        values[i] = (struct prb_ring_value){.null = nulls >> i & 1};
        if (table->ring[i].type != PRB_RING_TEXT) {
            values[i].integer = word;
            continue;
        }
        if (word < 0 || (uint64_t)word > len - used)
            return false;
        values[i].text = at + used;
        values[i].len = (size_t)word;
        used += (size_t)word;
    }
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct dumped_table *table = (const struct dumped_table *)prb_rows_table(rows);
    struct prb_ring_value values[PRB_RING_COLUMNS_MAX];
    int time = prb_recorded_time(table->ring, table->count);
    (void)err;
    for (size_t at = 0; at < table->rows_len;) {
        uint32_t length = 0;
        if (table->rows_len - at >= sizeof length)
            memcpy(&length, table->rows + at, sizeof length);
        at += sizeof length;
        if (!length || at > table->rows_len || length > table->rows_len - at ||
            !unpack(table, table->rows + at, length, values)) {
            prb_rows_warn(rows,
                          "python.%s: a part of the file is broken, and its rows are left out",
                          table->table.name);
            break;
        }
        at += length;
        prb_row_begin(rows);
        for (size_t i = 0; i < table->count; i++)
            prb_row_recorded(rows, &table->ring[i], &values[i]);
        if (time >= 0)
            prb_row_recorded(rows, &table->ring[time], &values[time]);
    }
    return true;
}

/* ---- tables ---- */

static void table_free(struct dumped_table *table)
{
    free(table->head);
    free((char *)(uintptr_t)table->table.name);
    free(table);
}
PRB_DEFINE_AUTO_PTR(dumped_table, struct dumped_table, table_free)

static bool read_column(char *line, struct prb_ring_column *out)
{
    out->name = strsep(&line, ":");
    const char *type = line ? strsep(&line, ":") : "";
    out->unit = line ? strsep(&line, ":") : "";
    out->doc = line ? line : "";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].word, type) == 0) {
            out->type = types[i].type;
            return true;
        }
    return false;
}

static bool read_columns(struct dumped_table *table)
{
    char *rest = table->head;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (table->count == PRB_RING_COLUMNS_MAX || !read_column(line, &table->ring[table->count]))
            return false;
        table->columns[table->count] = prb_recorded_column(&table->ring[table->count]);
        table->count++;
    }
    return table->count && prb_ring_columns_check(table->ring, table->count, NULL);
}

/* NULL: it cannot be parsed. */
static struct dumped_table *table_new(const char *name, const struct prb_buf *text)
{
    PRB_AUTO(dumped_table) struct dumped_table *table = calloc(1, sizeof *table);
    const char *end = text->data ? memmem(text->data, text->len, "\n\n", 2) : NULL;
    if (!table || !end || !prb_ring_is_name(name) || !prb_recorded_name_is_free(name, NULL))
        return NULL;
    table->table.name = strdup(name);
    table->head = strndup(text->data, (size_t)(end - text->data));
    if (!table->table.name || !table->head || !read_columns(table))
        return NULL;
    if (prb_recorded_time(table->ring, table->count) >= 0)
        table->columns[table->count] = (struct prb_column)PRB_RECORDED_TIMESTAMP;
    table->rows = end + 2;
    table->rows_len = text->len - (size_t)(table->rows - text->data);
    table->table.schema = "python";
    table->table.doc = "rows that the program wrote itself: the last ones before it crashed";
    table->table.columns = table->columns;
    table->table.fill = fill;
    return PRB_STEAL(table);
}

/* ---- the source ---- */

static bool changed(struct prb_table_source *source)
{
    return !((struct dumped_tables *)source)->listed;
}

static bool list(struct prb_table_source *source, const struct prb_table *const **out,
                 size_t *count_out, struct prb_error *err)
{
    struct dumped_tables *dump = (struct dumped_tables *)source;
    (void)err;
    dump->listed = true;
    *out = dump->tables;
    *count_out = dump->count;
    return true;
}

static void dumped_free(struct prb_table_source *source)
{
    struct dumped_tables *dump = (struct dumped_tables *)source;
    for (size_t i = 0; i < dump->count; i++)
        table_free((struct dumped_table *)(uintptr_t)dump->tables[i]);
    free(dump);
}

/* SQL's names are the same in capitals. */
static bool is_known(const struct dumped_tables *dump, const char *name)
{
    for (size_t i = 0; i < dump->count; i++)
        if (strcasecmp(dump->tables[i]->name, name) == 0)
            return true;
    return false;
}

struct prb_table_source *prb_dumped_tables_of(struct prb_proc *proc, struct prb_error *err)
{
    size_t prefix = strlen(PRB_TEXT_RING);
    struct dumped_tables *dump = calloc(1, sizeof *dump);
    if (!dump)
        return PRB_NULL(prb_nomem(err));
    dump->source = (struct prb_table_source){changed, list, dumped_free};
    for (size_t i = 0; i < proc->text_count && dump->count < TABLES_MAX; i++) {
        const struct prb_proc_text *text = &proc->texts[i];
        if (strncmp(text->name, PRB_TEXT_RING, prefix) != 0 || is_known(dump, text->name + prefix))
            continue;
        struct dumped_table *table = table_new(text->name + prefix, &text->text);
        if (table)
            dump->tables[dump->count++] = &table->table;
    }
    return &dump->source;
}
