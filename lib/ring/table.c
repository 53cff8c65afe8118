/*
 * Making tables and ending them.
 *
 * A handle stays in memory for as long as the process lives, as any thread may be about to write;
 * what ends is the mapping, by one of private memory in its place.
 */
#include <string.h>
#include <sys/mman.h>

#include "ring/columns.h"
#include "ring/writer.h"

#define ROUND_UP(n, to) (((n) + (to) - 1) / (to) * (to))

/* ---- shape ---- */

static void set_shape(struct prb_ring_table *table, const struct prb_ring_limits *limits)
{
    uint64_t bytes = limits && limits->bytes_max ? limits->bytes_max : PRB_RING_BYTES_DEFAULT;
    uint64_t aim = limits && limits->chunks ? limits->chunks : PRB_RING_CHUNKS_AIM;
    uint64_t chunk = PRB_RING_CHUNK_MAX, all = atomic_load(&prb_ring_process.memory_max);
    if (bytes < PRB_RING_BYTES_MIN)
        bytes = PRB_RING_BYTES_MIN;
    uint64_t likely = all && all < bytes ? all : bytes;
    while (chunk > PRB_RING_CHUNK_MIN && likely / chunk < aim)
        chunk /= 2;
    uint64_t count = bytes / chunk;
    table->chunk_bytes = (uint32_t)chunk;
    table->chunk_count = count < PRB_RING_CHUNKS_MAX ? (uint32_t)count : PRB_RING_CHUNKS_MAX;
    table->at_first = limits && limits->chunks ? table->chunk_count : PRB_RING_CHUNKS_AT_FIRST;
}

static void set_columns(struct prb_ring_table *table, const struct prb_ring_column *columns,
                        size_t count)
{
    table->column_count = (uint32_t)count;
    table->fixed = (uint32_t)(sizeof(struct prb_ring_row) + count * sizeof(union prb_ring_cell));
    for (size_t i = 0; i < count; i++) {
        table->type[i] = (uint8_t)columns[i].type;
        table->texts |= (uint64_t)(columns[i].type == PRB_RING_TEXT) << i;
        snprintf(table->column[i], sizeof table->column[i], "%s", columns[i].name);
    }
}

static bool same_columns(const struct prb_ring_table *table, const struct prb_ring_column *columns,
                         size_t count)
{
    bool same = table->column_count == count;
    for (size_t i = 0; same && i < count; i++)
        same = table->type[i] == columns[i].type && strcmp(table->column[i], columns[i].name) == 0;
    return same;
}

/* ---- the handle ---- */

static void table_discard(struct prb_ring_table *table)
{
    free(table->slots);
    free(table);
}
PRB_DEFINE_AUTO_PTR(table, struct prb_ring_table, table_discard)

static struct prb_ring_table *table_make(const char *folder, const char *name,
                                         const struct prb_ring_column *columns, size_t count,
                                         const struct prb_ring_limits *limits,
                                         struct prb_error *err)
{
    static uint32_t index; /* under the lock */
    PRB_AUTO(table) struct prb_ring_table *table = calloc(1, sizeof *table);
    if (!table)
        return PRB_NULL(prb_nomem(err));
    set_shape(table, limits);
    set_columns(table, columns, count);
    table->retention = limits ? limits->retention : 0;
    snprintf(table->name, sizeof table->name, "%s", name);
    if (snprintf(table->path, sizeof table->path, "%s/%s" PRB_RING_SUFFIX, folder, name) >=
        (int)sizeof table->path)
        return PRB_NULL(prb_fail(err, PRB_USAGE, "%s: the path is too long", folder));
    if (!prb_ring_file_make(table, columns, err))
        return NULL;
    table->index = index++;
    return PRB_STEAL(table);
}

static bool is_in(const struct prb_ring_table *table, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(table->path, folder, len) == 0 && table->path[len] == '/' &&
           !strchr(table->path + len + 1, '/');
}

static struct prb_ring_table *table_get(const char *folder, const char *name,
                                        const struct prb_ring_column *columns, size_t count,
                                        const struct prb_ring_limits *limits, struct prb_error *err)
{
    uint64_t token = prb_ring_token();
    struct prb_ring_table *table = atomic_load(&prb_ring_process.tables);
    for (; table; table = table->next) {
        if (atomic_load(&table->closed) || strcasecmp(table->name, name) != 0 ||
            !is_in(table, folder))
            continue;
        if (strcmp(table->name, name) == 0 && same_columns(table, columns, count))
            return table;
        prb_fail(err, PRB_USAGE, "there is a table %s with other columns", table->name);
        prb_error_remedy(err, "choose another name, or the columns that it has");
        return NULL;
    }
    table = table_make(folder, name, columns, count, limits, err);
    if (!table)
        return NULL;
    table->token = token;
    table->next = atomic_load(&prb_ring_process.tables);
    atomic_store(&prb_ring_process.tables, table);
    return table;
}

struct prb_ring_table *prb_ring_table_new(const char *folder, const char *name,
                                          const struct prb_ring_column *columns, size_t count,
                                          const struct prb_ring_limits *limits,
                                          struct prb_error *err)
{
    if (!prb_ring_table_name(name, err) || !prb_ring_columns_check(columns, count, err) ||
        !prb_ring_lock(err))
        return NULL;
    struct prb_ring_table *table = table_get(folder, name, columns, count, limits, err);
    prb_ring_unlock();
    return table;
}

void prb_ring_table_free(struct prb_ring_table *table)
{
    if (!table || !prb_ring_own(table) || atomic_exchange(&table->closed, true))
        return;
    prb_ring_file_unmap(table);
}

/* The calling thread's lane of it is the only one. */
static void leave_lane(const struct prb_ring_table *table)
{
    struct prb_ring_thread *thread = pthread_getspecific(prb_ring_process.key);
    if (thread && table->index < thread->count && thread->lanes[table->index].table == table)
        thread->lanes[table->index] = (struct prb_ring_lane){0};
}

void prb_ring_table_forget(struct prb_ring_table *table)
{
    if (!table || !prb_ring_own(table) || !prb_ring_lock(NULL))
        return;
    struct prb_ring_table *before = atomic_load(&prb_ring_process.tables);
    if (before == table)
        atomic_store(&prb_ring_process.tables, table->next);
    for (; before; before = before->next)
        if (before->next == table)
            before->next = table->next;
    leave_lane(table);
    if (!atomic_exchange(&table->closed, true))
        prb_ring_file_unmap(table);
    munmap(table->map, table->map_bytes);
    prb_ring_unlock();
    table_discard(table);
}

/* ---- all tables ---- */

static void each_own(void (*act)(struct prb_ring_table *table))
{
    if (!prb_ring_lock(NULL))
        return;
    prb_ring_token();
    for (struct prb_ring_table *table = atomic_load(&prb_ring_process.tables); table;
         table = table->next)
        if (!atomic_load(&table->closed))
            act(table);
    prb_ring_unlock();
}

void prb_ring_tables_free(void) { each_own(prb_ring_table_free); }

void prb_ring_prepare(void) { each_own(prb_ring_chunk_prepare); }

void prb_ring_set_memory(uint64_t bytes)
{
    atomic_store(&prb_ring_process.memory_max, bytes);
    each_own(prb_ring_chunk_trim);
}

uint64_t prb_ring_memory(void) { return atomic_load(&prb_ring_process.memory); }

static void set_retention(struct prb_ring_table *table)
{
    atomic_store(&table->head->retention, prb_ring_retention_bits(table->retention));
}

void prb_ring_set_retention(double seconds)
{
    prb_ring_process.retention = seconds;
    each_own(set_retention);
}

/* ---- columns as text ---- */

static const struct {
    const char *name;
    enum prb_ring_type type;
} types[] = {
    {"integer", PRB_RING_INTEGER}, {"real", PRB_RING_REAL}, {"text", PRB_RING_TEXT},
    {"boolean", PRB_RING_BOOLEAN}, {"time", PRB_RING_TIME},
};

#define TEXT_MAX ((size_t)PRB_RING_COLUMNS_MAX * 1024)

/* The part up to the next ':' (ended there), or the rest when it is the last; *rest: behind it, ""
 * at the end. */
static char *part(char **rest, bool last)
{
    char *begin = *rest, *end = begin + (last ? strlen(begin) : strcspn(begin, ":"));
    *rest = *end ? end + 1 : end;
    *end = '\0';
    return begin;
}

bool prb_ring_type_named(const char *name, enum prb_ring_type *out)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) {
            *out = types[i].type;
            return true;
        }
    return false;
}

static bool parse_line(char *line, struct prb_ring_column *out, struct prb_error *err)
{
    out->name = part(&line, false);
    const char *type = part(&line, false);
    out->unit = part(&line, false);
    out->doc = part(&line, true);
    if (prb_ring_type_named(type, &out->type))
        return true;
    prb_fail(err, PRB_USAGE, "column %.80s: \"%.40s\" is not a type", out->name, type);
    return prb_error_remedy(err, "types are integer, real, text, boolean and time");
}

const char *prb_ring_type_name(enum prb_ring_type type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return types[i].name;
    return "";
}

bool prb_ring_columns_parse(char *text, struct prb_ring_column out[PRB_RING_COLUMNS_MAX],
                            size_t *count_out, struct prb_error *err)
{
    char *rest = text;
    *count_out = 0;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!*line)
            continue;
        if (*count_out == PRB_RING_COLUMNS_MAX)
            return prb_fail(err, PRB_USAGE, "a table has at most %d columns", PRB_RING_COLUMNS_MAX);
        if (!parse_line(line, &out[(*count_out)++], err))
            return false;
    }
    return true;
}

struct prb_ring_table *prb_ring_table_parse(const char *folder, const char *name,
                                            const char *columns,
                                            const struct prb_ring_limits *limits,
                                            struct prb_error *err)
{
    struct prb_ring_column parsed[PRB_RING_COLUMNS_MAX];
    size_t count;
    if (strnlen(columns, TEXT_MAX + 1) > TEXT_MAX)
        return PRB_NULL(
            prb_fail(err, PRB_USAGE, "the text of the columns of %.80s is too long", name));
    PRB_AUTO_FREE char *text = strdup(columns);
    if (!text)
        return PRB_NULL(prb_nomem(err));
    if (!prb_ring_columns_parse(text, parsed, &count, err))
        return NULL;
    return prb_ring_table_new(folder, name, parsed, count, limits, err);
}
