/* Reading a ring of the probe's own for a built-in table: see each.h. */
#include "table/recorded/each.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "inspect/target.h"
#include "ring/format.h"
#include "sql/db.h"
#include "table/recorded/folder.h"
#include "table/recorded/live.h"

static const char *const types[] = {
    [PRB_RING_INTEGER] = "integer", [PRB_RING_REAL] = "real", [PRB_RING_TEXT] = "text",
    [PRB_RING_BOOLEAN] = "boolean", [PRB_RING_TIME] = "time",
};

/* "name:type", and what follows up to the line's end. */
static bool is_column(const char *line, size_t len, const struct prb_ring_column *column)
{
    size_t name = strlen(column->name), type = strlen(types[column->type]);
    return len >= name + 1 + type && memcmp(line, column->name, name) == 0 && line[name] == ':' &&
           memcmp(line + name + 1, types[column->type], type) == 0 &&
           (len == name + 1 + type || line[name + 1 + type] == ':');
}

/* The file is the process's, which may have written anything into it. */
static bool has_columns(const struct prb_ring_reader *reader, const char *columns)
{
    size_t count;
    const struct prb_ring_column *there = prb_ring_columns(reader, &count);
    for (size_t i = 0; i < count; i++) {
        size_t len = strcspn(columns, "\n");
        if (!is_column(columns, len, &there[i]))
            return false;
        columns += len + (columns[len] == '\n');
    }
    return !*columns;
}

static int folder_of(struct prb_rows *rows)
{
    struct prb_db *db = prb_rows_db(rows);
    struct prb_target *target = prb_rows_target(rows);
    if (db->ended)
        return openat(db->ended_folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return target && prb_proc_exists(target->proc) ? prb_recorded_folder_of(target->proc) : -1;
}

PRB_DEFINE_AUTO_PTR(prb_ring_reader, struct prb_ring_reader, prb_ring_close)

static struct prb_ring_reader *open_ring(struct prb_rows *rows, const char *ring)
{
    char file[PRB_RING_NAME_MAX + sizeof PRB_RING_SUFFIX];
    PRB_AUTO_FD int folder = folder_of(rows);
    snprintf(file, sizeof file, "%s" PRB_RING_SUFFIX, ring);
    return folder >= 0 ? prb_ring_open(folder, file, NULL) : NULL;
}

static void warn(struct prb_rows *rows, const char *ring, const struct prb_ring_counts *counts)
{
    if (counts->broken)
        prb_rows_warn(rows, "%s: %llu parts of its file are broken, and their rows are left out",
                      ring, (unsigned long long)counts->broken);
    else if (counts->dropped)
        prb_rows_warn(rows, "%s: %llu rows were dropped by the process: there was no room", ring,
                      (unsigned long long)counts->dropped);
}

bool prb_recorded_each(struct prb_rows *rows, const char *ring, const char *columns,
                       bool (*row)(void *context, const struct prb_ring_value *values),
                       void *context, struct prb_error *err)
{
    struct prb_ring_counts counts;
    PRB_AUTO(prb_ring_reader) struct prb_ring_reader *reader = open_ring(rows, ring);
    if (!reader || !has_columns(reader, columns))
        return true;
    if (!prb_ring_each(reader, row, context, &counts, err))
        return false;
    warn(rows, ring, &counts);
    return true;
}

/* ---- as the table shows them ---- */

struct same {
    struct prb_rows *rows;
    const struct prb_ring_column *ring;
    size_t count;
    int place[PRB_RING_COLUMNS_MAX]; /* of the table's columns in the ring; -1: it has none */
};

static bool put_same(void *context, const struct prb_ring_value *values)
{
    const struct same *same = context;
    prb_row_begin(same->rows);
    for (size_t i = 0; i < same->count; i++) {
        if (same->place[i] < 0)
            prb_row_null(same->rows);
        else
            prb_row_recorded(same->rows, &same->ring[same->place[i]], &values[same->place[i]]);
    }
    return true;
}

static bool is_type(const struct prb_ring_column *ring, enum prb_type type)
{
    return prb_recorded_column(ring).type == type;
}

/* Every column of the ring is one of the table. */
static bool match(struct same *same, size_t ring_count, const struct prb_column *columns)
{
    size_t found = 0;
    for (; columns[same->count].name && !columns[same->count].hidden; same->count++) {
        const struct prb_column *column = &columns[same->count];
        same->place[same->count] = -1;
        for (size_t i = 0; i < ring_count; i++)
            if (strcmp(same->ring[i].name, column->name) == 0 &&
                is_type(&same->ring[i], column->type)) {
                same->place[same->count] = (int)i;
                found++;
            }
    }
    return found == ring_count;
}

bool prb_recorded_same(struct prb_rows *rows, const char *ring, struct prb_error *err)
{
    struct prb_ring_counts counts;
    size_t count;
    PRB_AUTO(prb_ring_reader) struct prb_ring_reader *reader = open_ring(rows, ring);
    struct same same = {.rows = rows};
    if (!reader)
        return true;
    same.ring = prb_ring_columns(reader, &count);
    if (!match(&same, count, prb_rows_table(rows)->columns))
        return true;
    if (!prb_ring_each(reader, put_same, &same, &counts, err))
        return false;
    warn(rows, ring, &counts);
    return true;
}
