/* See postgres_tables.h. */
#include "fleet/history/postgres_tables.h"

#include "config.h"

#ifdef PRB_SONAME_PQ

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/chunk.h"

#define SHAPES_MAX 512 /* that are remembered */
#define NAME_MAX_PQ 63 /* bytes of a name; longer ones would be cut */

static const struct {
    const char *name;
    enum prb_ring_type type;
} own_columns[PRB_OWN_COUNT] = {[PRB_OWN_RANK] = {"rank", PRB_RING_INTEGER},
                                [PRB_OWN_HOST] = {"host", PRB_RING_TEXT},
                                [PRB_OWN_JOB] = {"job", PRB_RING_TEXT},
                                [PRB_OWN_PID] = {"pid", PRB_RING_INTEGER},
                                [PRB_OWN_PROCESS] = {"_process", PRB_RING_INTEGER}};

static const struct {
    const char *name, *suffix;
} types[] = {[PRB_RING_INTEGER] = {"bigint", "integer"},
             [PRB_RING_REAL] = {"double precision", "real"},
             [PRB_RING_TEXT] = {"text", "text"},
             [PRB_RING_BOOLEAN] = {"boolean", "boolean"},
             [PRB_RING_TIME] = {"double precision", "real"}};

void prb_postgres_forget_shapes(struct prb_postgres_shapes *shapes)
{
    while (shapes->count) {
        struct prb_postgres_shape *shape = &shapes->items[--shapes->count];
        free(shape->key);
        free(shape->copy);
    }
}

/* The column's name there; a name of ours needs no escape, but quotes: it may be a word of SQL. */
static void column_name(const char *name, enum prb_ring_type type, bool other,
                        char out[NAME_MAX_PQ + 1])
{
    if (other)
        snprintf(out, NAME_MAX_PQ + 1, "%.*s_%s",
                 (int)(NAME_MAX_PQ - 1 - strlen(types[type].suffix)), name, types[type].suffix);
    else
        snprintf(out, NAME_MAX_PQ + 1, "%s", name);
}

/* Whether a column is there: 1, with another type: -1. */
static int is_there(struct pg_result *columns, const char *name, enum prb_ring_type type)
{
    for (int i = 0; i < prb_postgres_rows(columns); i++)
        if (strcmp(prb_postgres_value(columns, i, 0), name) == 0)
            return strcmp(prb_postgres_value(columns, i, 1), types[type].name) == 0 ? 1 : -1;
    return 0;
}

/* One column into both statements. */
static bool add_column(struct pg_result *columns, const char *name, enum prb_ring_type type,
                       struct prb_buf *alter, struct prb_buf *copy, struct prb_error *err)
{
    char there[NAME_MAX_PQ + 1];
    column_name(name, type, false, there);
    int found = is_there(columns, there, type);
    if (found < 0) {
        column_name(name, type, true, there);
        found = is_there(columns, there, type);
    }
    if (found < 0)
        return prb_fail(err, PRB_CORRUPT, "the column %s has another type", there);
    if (!found)
        prb_buf_addf(alter, "%s ADD COLUMN \"%s\" %s", alter->len ? "," : "", there,
                     types[type].name);
    prb_buf_addf(copy, "%s\"%s\"", copy->data[copy->len - 1] == '(' ? "" : ", ", there);
    return true;
}

static struct pg_result *columns_of(struct prb_postgres_shapes *shapes,
                                    const struct prb_taken *taken, struct prb_error *err)
{
    const char *values[] = {taken->schema, taken->name};
    return prb_postgres_run(
        shapes->server,
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute JOIN pg_class ON "
        "pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE "
        "nspname = $1 AND relname = $2 AND attnum > 0 AND NOT attisdropped",
        2, values, err);
}

/* Make the table, or give it the columns that it has not. */
static bool make_table(struct prb_postgres_shapes *shapes, const struct prb_taken *taken,
                       struct prb_postgres_shape *shape, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf alter = {0}, copy = {0}, sql = {0};
    struct pg_result *columns = columns_of(shapes, taken, err);
    if (!columns)
        return false;
    bool table = prb_postgres_rows(columns) > 0, good = true;
    size_t time = prb_store_time_column(taken->columns, taken->count);
    prb_buf_addf(&copy, "COPY \"%s\".\"%s\" (", taken->schema, taken->name);
    for (size_t i = 0; good && prb_buf_ok(&copy) && i < taken->count; i++)
        good =
            add_column(columns, taken->columns[i].name, taken->columns[i].type, &alter, &copy, err);
    for (int i = 0; good && prb_buf_ok(&copy) && i < PRB_OWN_COUNT; i++) {
        shape->own[i] = true;
        for (size_t k = 0; k < taken->count; k++)
            if (strcmp(taken->columns[k].name, own_columns[i].name) == 0)
                shape->own[i] = false;
        if (shape->own[i])
            good =
                add_column(columns, own_columns[i].name, own_columns[i].type, &alter, &copy, err);
    }
    prb_postgres_free(columns);
    if (!good)
        return false;
    prb_buf_adds(&copy, ") FROM STDIN (FORMAT binary)");
    prb_buf_addf(&sql, "ALTER TABLE \"%s\".\"%s\" ", taken->schema, taken->name);
    prb_buf_adds(&sql, alter.data ? alter.data : "");
    if (!prb_buf_ok(&copy) || !prb_buf_ok(&alter) || !prb_buf_ok(&sql) ||
        !(shape->copy = prb_buf_steal(&copy)))
        return prb_nomem(err);
    if (!alter.len)
        return true;
    if (!table) {
        PRB_AUTO(prb_buf) struct prb_buf create = {0};
        prb_buf_addf(&create, "CREATE TABLE IF NOT EXISTS \"%s\".\"%s\" ()", taken->schema,
                     taken->name);
        if (!prb_postgres_run_only(shapes->server,
                                   strcmp(taken->schema, "python") == 0
                                       ? "CREATE SCHEMA IF NOT EXISTS python"
                                       : "CREATE SCHEMA IF NOT EXISTS host",
                                   err) ||
            !(prb_buf_ok(&create) ? prb_postgres_run_only(shapes->server, create.data, err)
                                  : prb_nomem(err)))
            return false;
    }
    if (!prb_postgres_run_only(shapes->server, sql.data, err))
        return false;
    if (table || time >= taken->count)
        return true;
    /* Rows come in the order of time, nearly: such an index is small. */
    PRB_AUTO(prb_buf) struct prb_buf index = {0};
    prb_buf_addf(&index, "CREATE INDEX ON \"%s\".\"%s\" USING brin (\"%s\")", taken->schema,
                 taken->name, taken->columns[time].name);
    return prb_buf_ok(&index) ? prb_postgres_run_only(shapes->server, index.data, err)
                              : prb_nomem(err);
}

static bool add_shape(struct prb_postgres_shapes *shapes, const struct prb_taken *taken, char *key,
                      struct prb_error *err)
{
    if (shapes->count >= SHAPES_MAX)
        prb_postgres_forget_shapes(shapes);
    if (!PRB_GROW(shapes->items, shapes->count, shapes->cap))
        return prb_nomem(err);
    struct prb_postgres_shape shape = {.key = key};
    /* Others may be at it: what is read must be what is changed. */
    if (!prb_postgres_run_only(shapes->server,
                               "SELECT pg_advisory_xact_lock(" PRB_POSTGRES_MADE_LOCK ")", err) ||
        !make_table(shapes, taken, &shape, err)) {
        free(shape.copy);
        return false;
    }
    shapes->items[shapes->count++] = shape;
    return true;
}

const struct prb_postgres_shape *prb_postgres_shape_of(struct prb_postgres_shapes *shapes,
                                                       const struct prb_taken *taken,
                                                       struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf key = {0};
    prb_buf_addf(&key, "%s.%s", taken->schema, taken->name);
    for (size_t i = 0; i < taken->count; i++)
        prb_buf_addf(&key, ",%s:%d", taken->columns[i].name, (int)taken->columns[i].type);
    if (!prb_buf_ok(&key))
        return PRB_NULL(prb_nomem(err));
    for (size_t i = 0; i < shapes->count; i++)
        if (strcmp(shapes->items[i].key, key.data) == 0)
            return &shapes->items[i];
    char *text = prb_buf_steal(&key);
    if (!text)
        return PRB_NULL(prb_nomem(err));
    if (add_shape(shapes, taken, text, err))
        return &shapes->items[shapes->count - 1];
    free(text);
    return NULL;
}

#endif
