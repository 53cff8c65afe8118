/*
 * Tables of a crash dump: the rows that lib/crash/rings.c saved.  The file's bytes are hostile:
 * every length is checked before it is used.
 */
#include "table/recorded/dump.h"

#include <string.h>

#include "proc/source.h"
#include "ring/columns.h"
#include "table/recorded/history.h"
#include "table/recorded/live.h"
#include "table/recorded/names.h"

#define TABLES_MAX 64

struct dumped_table {
    struct prb_table table; /* first */
    struct prb_dumped_ring ring;
    struct prb_column columns[PRB_RING_COLUMNS_MAX + 1];
};

struct dumped_tables {
    struct prb_table_source source; /* first */
    struct prb_history history;
    const struct prb_table *tables[TABLES_MAX];
    size_t count;
    bool listed;
};

/* ---- a ring ---- */

static bool read_column(char *line, struct prb_ring_column *out)
{
    out->name = strsep(&line, ":");
    const char *type = line ? strsep(&line, ":") : "";
    out->unit = line ? strsep(&line, ":") : "";
    out->doc = line ? line : "";
    return prb_ring_type_named(type, &out->type);
}

static bool read_columns(struct prb_dumped_ring *ring)
{
    char *rest = ring->head;
    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        if (ring->count == PRB_RING_COLUMNS_MAX || !read_column(line, &ring->columns[ring->count]))
            return false;
        ring->count++;
    }
    return ring->count && prb_ring_columns_check(ring->columns, ring->count, NULL);
}

void prb_dumped_ring_deinit(struct prb_dumped_ring *ring) { free(ring->head); }

static bool read_ring(const struct prb_buf *text, struct prb_dumped_ring *out)
{
    const char *end = text->data ? memmem(text->data, text->len, "\n\n", 2) : NULL;
    *out = (struct prb_dumped_ring){0};
    if (!end || !(out->head = strndup(text->data, (size_t)(end - text->data))) ||
        !read_columns(out)) {
        prb_dumped_ring_deinit(out);
        *out = (struct prb_dumped_ring){0};
        return false;
    }
    out->rows = end + 2;
    out->rows_len = text->len - (size_t)(out->rows - text->data);
    return true;
}

bool prb_dumped_ring_read(const struct prb_proc *proc, const char *name,
                          struct prb_dumped_ring *out)
{
    size_t prefix = strlen(PRB_TEXT_RING);
    *out = (struct prb_dumped_ring){0};
    for (size_t i = 0; i < proc->text_count; i++)
        if (strncmp(proc->texts[i].name, PRB_TEXT_RING, prefix) == 0 &&
            strcmp(proc->texts[i].name + prefix, name) == 0)
            return read_ring(&proc->texts[i].text, out);
    return false;
}

/* One row's values from its bytes; false: they contradict themselves. */
static bool unpack(const struct prb_dumped_ring *ring, const char *at, size_t len,
                   struct prb_ring_value *values)
{
    size_t fixed = (1 + ring->count) * sizeof(uint64_t), used = fixed;
    uint64_t nulls;
    if (len < fixed)
        return false;
    memcpy(&nulls, at, sizeof nulls);
    for (size_t i = 0; i < ring->count; i++) {
        int64_t word;
        memcpy(&word, at + (1 + i) * sizeof word, sizeof word);
        values[i] = (struct prb_ring_value){.null = nulls >> i & 1};
        if (ring->columns[i].type != PRB_RING_TEXT) {
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

bool prb_dumped_ring_each(const struct prb_dumped_ring *ring,
                          bool (*row)(void *context, const struct prb_ring_value *values),
                          void *context, bool *broken_out)
{
    struct prb_ring_value values[PRB_RING_COLUMNS_MAX];
    *broken_out = false;
    for (size_t at = 0; at < ring->rows_len;) {
        uint32_t length = 0;
        if (ring->rows_len - at >= sizeof length)
            memcpy(&length, ring->rows + at, sizeof length);
        at += sizeof length;
        if (!length || at > ring->rows_len || length > ring->rows_len - at ||
            !unpack(ring, ring->rows + at, length, values)) {
            *broken_out = true;
            return true;
        }
        at += length;
        if (!row(context, values))
            return false;
    }
    return true;
}

/* ---- tables ---- */

struct filling {
    struct prb_rows *rows;
    const struct prb_dumped_ring *ring;
    int time;
};

static bool put_row(void *context, const struct prb_ring_value *values)
{
    const struct filling *filling = context;
    const struct prb_dumped_ring *ring = filling->ring;
    prb_row_begin(filling->rows);
    for (size_t i = 0; i < ring->count; i++)
        prb_row_recorded(filling->rows, &ring->columns[i], &values[i]);
    if (filling->time >= 0)
        prb_row_recorded(filling->rows, &ring->columns[filling->time], &values[filling->time]);
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct dumped_table *table = (const struct dumped_table *)prb_rows_table(rows);
    const struct prb_dumped_ring *ring = &table->ring;
    struct filling filling = {rows, ring, prb_recorded_time(ring->columns, ring->count)};
    bool broken;
    (void)err;
    prb_dumped_ring_each(ring, put_row, &filling, &broken);
    if (broken)
        prb_rows_warn(rows, "python.%s: a part of the file is broken, and its rows are left out",
                      table->table.name);
    return true;
}

static void table_free(struct dumped_table *table)
{
    prb_dumped_ring_deinit(&table->ring);
    free((char *)(uintptr_t)table->table.name);
    free(table);
}
PRB_DEFINE_AUTO_PTR(dumped_table, struct dumped_table, table_free)

/* NULL: it cannot be parsed. */
static struct dumped_table *table_new(const char *name, const struct prb_buf *text)
{
    PRB_AUTO(dumped_table) struct dumped_table *table = calloc(1, sizeof *table);
    if (!table || !prb_ring_is_name(name) || !prb_recorded_name_is_free(name, NULL) ||
        !(table->table.name = strdup(name)) || !read_ring(text, &table->ring))
        return NULL;
    const struct prb_dumped_ring *ring = &table->ring;
    for (size_t i = 0; i < ring->count; i++)
        table->columns[i] = prb_recorded_column(&ring->columns[i]);
    if (prb_recorded_time(ring->columns, ring->count) >= 0)
        table->columns[ring->count] = (struct prb_column)PRB_RECORDED_TIMESTAMP;
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
    dump->history = (struct prb_history){.folder = -1, .dump = proc};
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

const struct prb_history *prb_dumped_history(struct prb_table_source *source)
{
    return source->free == dumped_free ? &((struct dumped_tables *)source)->history : NULL;
}
