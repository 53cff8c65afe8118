/*
 * A PostgreSQL database: see sink.h.
 *
 * A table of the stream is python.NAME (what the machine says of a process: host.NAME): its columns,
 * then rank, host, job and pid where it has none of that name, and _process.  integer is bigint, real
 * and time (s since the epoch) are double precision.  Columns that come later are added; one that
 * comes with another type is NAME_TYPE.  Beside them the schema probing: process, gap (rows that
 * were overwritten before they were read), and position, how far each stream was taken.
 */
#include "fleet/history/sink.h"

#include <string.h>

#include "config.h"

bool prb_sink_is_postgres(const char *target)
{
    return strncmp(target, "postgresql://", 13) == 0 || strncmp(target, "postgres://", 11) == 0;
}

#ifdef PRB_SONAME_PQ

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fleet/history/postgres.h"
#include "store/chunk.h"

#define SHAPES_MAX 512 /* that are remembered */
#define MADE_LOCK "7309453186320551"
#define PROCESSES_MAX 4096
#define NAME_MAX_PQ 63 /* bytes of a name; longer ones would be cut */

struct shape {
    char *key;  /* schema, name, columns */
    char *copy; /* the statement */
    bool own[5];
};

struct known {
    char *key; /* of its agent */
    int64_t pid, started;
    char id[24];
};

struct postgres {
    struct prb_sink sink;
    struct prb_postgres server;
    char *url;
    struct shape *shapes;
    size_t count, cap;
    struct known *processes; /* that are there */
    size_t known_count, known_cap;
};

/* Beside the table's columns. */
enum own { RANK, HOST, JOB, PID, PROCESS, OWN_COUNT };
static const struct {
    const char *name;
    enum prb_ring_type type;
} own_columns[OWN_COUNT] = {[RANK] = {"rank", PRB_RING_INTEGER},
                            [HOST] = {"host", PRB_RING_TEXT},
                            [JOB] = {"job", PRB_RING_TEXT},
                            [PID] = {"pid", PRB_RING_INTEGER},
                            [PROCESS] = {"_process", PRB_RING_INTEGER}};

static const struct {
    const char *name, *suffix;
} types[] = {[PRB_RING_INTEGER] = {"bigint", "integer"},
             [PRB_RING_REAL] = {"double precision", "real"},
             [PRB_RING_TEXT] = {"text", "text"},
             [PRB_RING_BOOLEAN] = {"boolean", "boolean"},
             [PRB_RING_TIME] = {"double precision", "real"}};

/* ---- the connection ---- */

static void forget_shapes(struct postgres *postgres)
{
    while (postgres->count) {
        struct shape *shape = &postgres->shapes[--postgres->count];
        free(shape->key);
        free(shape->copy);
    }
}

static void forget_processes(struct postgres *postgres)
{
    while (postgres->known_count)
        free(postgres->processes[--postgres->known_count].key);
}

static void forget(struct postgres *postgres)
{
    forget_shapes(postgres);
    forget_processes(postgres);
}

static void leave(struct postgres *postgres)
{
    prb_postgres_leave(&postgres->server);
    forget(postgres);
}

static bool make_schema(struct postgres *postgres, struct prb_error *err)
{
    /* The lock: of two that make what is not there, one would fail. */
    static const char *const statements[] = {
        "BEGIN",
        "SELECT pg_advisory_xact_lock(" MADE_LOCK ")",
        "CREATE SCHEMA IF NOT EXISTS probing",
        "CREATE TABLE IF NOT EXISTS probing.position(stream bigint PRIMARY KEY, number bigint NOT "
        "NULL, taken timestamptz NOT NULL DEFAULT now())",
        "CREATE TABLE IF NOT EXISTS probing.process(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY "
        "KEY, key text NOT NULL, host text, job text, rank integer, world_size integer, pid bigint "
        "NOT NULL, started bigint NOT NULL, UNIQUE(key, pid, started))",
        "CREATE TABLE IF NOT EXISTS probing.gap(table_name text, _process bigint, until "
        "timestamptz NOT NULL DEFAULT now(), rows bigint)",
        "COMMIT",
    };
    struct pg_result *found = prb_postgres_run(
        &postgres->server,
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'probing' AND tablename IN "
        "('position', 'process', 'gap')",
        0, NULL, err);
    if (!found)
        return false;
    bool there = strcmp(prb_postgres_value(found, 0, 0), "3") == 0;
    prb_postgres_free(found);
    /* One who may only write finds what another has made. */
    for (size_t i = 0; !there && i < sizeof statements / sizeof *statements; i++)
        if (!prb_postgres_run_only(&postgres->server, statements[i], err))
            return false;
    return true;
}

/* Connected, with the schema. */
static bool connect_to(struct postgres *postgres, struct prb_error *err)
{
    if (!prb_postgres_is_lost(&postgres->server))
        return true;
    forget(postgres);
    if (!prb_postgres_connect(&postgres->server, err))
        return false;
    snprintf(postgres->sink.name, sizeof postgres->sink.name, "%s", postgres->server.name);
    if (make_schema(postgres, err))
        return true;
    leave(postgres);
    return false;
}

/* ---- transactions ---- */

static void roll_back(struct prb_sink *sink)
{
    struct postgres *postgres = (struct postgres *)sink;
    forget(postgres); /* what they say may be undone now */
    if (!prb_postgres_roll_back(&postgres->server))
        leave(postgres);
}

static bool begin(struct prb_sink *sink, uint64_t stream, uint64_t *position, bool *again,
                  struct prb_error *err)
{
    struct postgres *postgres = (struct postgres *)sink;
    struct prb_error why = {0};
    char sql[300];
    struct pg_result *result = NULL;
    snprintf(sql, sizeof sql,
             "BEGIN; INSERT INTO probing.position(stream, number) VALUES(%" PRId64 ", 0) ON "
             "CONFLICT DO NOTHING; SELECT number FROM probing.position WHERE stream = %" PRId64
             " FOR UPDATE",
             (int64_t)stream, (int64_t)stream);
    if (connect_to(postgres, &why)) /* another record of the same stream waits here */
        result = prb_postgres_run(&postgres->server, sql, 0, NULL, &why);
    *again = why.code == PRB_GONE;
    if (result && prb_postgres_rows(result) == 1) {
        *position = strtoull(prb_postgres_value(result, 0, 0), NULL, 10);
        prb_postgres_free(result);
        return true;
    }
    if (result) {
        prb_postgres_free(result);
        prb_fail(&why, PRB_IO, "PostgreSQL: probing.position has no row of this stream");
    }
    roll_back(sink);
    if (err)
        *err = why;
    return false;
}

static bool commit(struct prb_sink *sink, uint64_t stream, uint64_t position, bool *again,
                   struct prb_error *err)
{
    struct postgres *postgres = (struct postgres *)sink;
    struct prb_error why = {0};
    char sql[200];
    snprintf(sql, sizeof sql,
             "UPDATE probing.position SET number = %" PRIu64
             ", taken = now() WHERE stream = %" PRId64 "; COMMIT",
             position, (int64_t)stream);
    bool good = prb_postgres_run_only(&postgres->server, sql, &why);
    *again = why.code == PRB_GONE;
    if (!good && err)
        *err = why;
    return good;
}

/* ---- a table ---- */

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

static struct pg_result *columns_of(struct postgres *postgres, const struct prb_taken *taken,
                                    struct prb_error *err)
{
    const char *values[] = {taken->schema, taken->name};
    return prb_postgres_run(
        &postgres->server,
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute JOIN pg_class ON "
        "pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE "
        "nspname = $1 AND relname = $2 AND attnum > 0 AND NOT attisdropped",
        2, values, err);
}

/* Make the table, or give it the columns that it has not. */
static bool make_table(struct postgres *postgres, const struct prb_taken *taken,
                       struct shape *shape, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf alter = {0}, copy = {0}, sql = {0};
    struct pg_result *columns = columns_of(postgres, taken, err);
    if (!columns)
        return false;
    bool table = prb_postgres_rows(columns) > 0, good = true;
    size_t time = prb_store_time_column(taken->columns, taken->count);
    prb_buf_addf(&copy, "COPY \"%s\".\"%s\" (", taken->schema, taken->name);
    for (size_t i = 0; good && prb_buf_ok(&copy) && i < taken->count; i++)
        good =
            add_column(columns, taken->columns[i].name, taken->columns[i].type, &alter, &copy, err);
    for (int i = 0; good && prb_buf_ok(&copy) && i < OWN_COUNT; i++) {
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
        if (!prb_postgres_run_only(&postgres->server,
                                   strcmp(taken->schema, "python") == 0
                                       ? "CREATE SCHEMA IF NOT EXISTS python"
                                       : "CREATE SCHEMA IF NOT EXISTS host",
                                   err) ||
            !(prb_buf_ok(&create) ? prb_postgres_run_only(&postgres->server, create.data, err)
                                  : prb_nomem(err)))
            return false;
    }
    if (!prb_postgres_run_only(&postgres->server, sql.data, err))
        return false;
    if (table || time >= taken->count)
        return true;
    /* Rows come in the order of time, nearly: such an index is small. */
    PRB_AUTO(prb_buf) struct prb_buf index = {0};
    prb_buf_addf(&index, "CREATE INDEX ON \"%s\".\"%s\" USING brin (\"%s\")", taken->schema,
                 taken->name, taken->columns[time].name);
    return prb_buf_ok(&index) ? prb_postgres_run_only(&postgres->server, index.data, err)
                              : prb_nomem(err);
}

static bool add_shape(struct postgres *postgres, const struct prb_taken *taken, char *key,
                      struct prb_error *err)
{
    if (postgres->count >= SHAPES_MAX)
        forget_shapes(postgres);
    if (!PRB_GROW(postgres->shapes, postgres->count, postgres->cap))
        return prb_nomem(err);
    struct shape shape = {.key = key};
    /* Others may be at it: what is read must be what is changed. */
    if (!prb_postgres_run_only(&postgres->server, "SELECT pg_advisory_xact_lock(" MADE_LOCK ")",
                               err) ||
        !make_table(postgres, taken, &shape, err)) {
        free(shape.copy);
        return false;
    }
    postgres->shapes[postgres->count++] = shape;
    return true;
}

static const struct shape *shape_of(struct postgres *postgres, const struct prb_taken *taken,
                                    struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf key = {0};
    prb_buf_addf(&key, "%s.%s", taken->schema, taken->name);
    for (size_t i = 0; i < taken->count; i++)
        prb_buf_addf(&key, ",%s:%d", taken->columns[i].name, (int)taken->columns[i].type);
    if (!prb_buf_ok(&key))
        return PRB_NULL(prb_nomem(err));
    for (size_t i = 0; i < postgres->count; i++)
        if (strcmp(postgres->shapes[i].key, key.data) == 0)
            return &postgres->shapes[i];
    char *text = prb_buf_steal(&key);
    if (!text)
        return PRB_NULL(prb_nomem(err));
    if (add_shape(postgres, taken, text, err))
        return &postgres->shapes[postgres->count - 1];
    free(text);
    return NULL;
}

/* ---- rows ---- */

/* What a binary COPY begins with: its mark, no flags, no extension. */
static const char copy_begins[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";
#define COPY_BEGINS (sizeof copy_begins - 1)

static void add_length(struct prb_buf *out, int32_t bytes)
{
    uint32_t big = htobe32((uint32_t)bytes);
    prb_buf_add(out, &big, sizeof big);
}

/* -1 is NULL's. */
static void add_null(struct prb_buf *out) { add_length(out, -1); }

static void add_eight(struct prb_buf *out, uint64_t value)
{
    const struct {
        uint32_t len, high, low;
    } big = {htobe32(8), htobe32((uint32_t)(value >> 32)), htobe32((uint32_t)value)};
    prb_buf_add(out, &big, sizeof big);
}

static void add_integer(struct prb_buf *out, int64_t value) { add_eight(out, (uint64_t)value); }

static void add_real(struct prb_buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_eight(out, bits);
}

/* A text has no NUL there: the sign for it. */
static void add_text(struct prb_buf *out, const char *text, size_t len)
{
    static const char sign[] = "\xe2\x90\x80";
    size_t nuls = 0;
    for (const char *at = text; (at = memchr(at, '\0', len - (size_t)(at - text))); at++)
        nuls++;
    add_length(out, (int32_t)(len + nuls * (sizeof sign - 2)));
    for (; nuls; nuls--) {
        size_t plain = strlen(text);
        prb_buf_add(out, text, plain);
        prb_buf_adds(out, sign);
        text += plain + 1;
        len -= plain + 1;
    }
    prb_buf_add(out, text, len);
}

static void add_boolean(struct prb_buf *out, bool value)
{
    add_length(out, 1);
    prb_buf_addc(out, (char)value);
}

static void add_value(struct prb_buf *out, enum prb_ring_type type,
                      const struct prb_ring_value *value)
{
    if (value->null)
        add_null(out);
    else if (type == PRB_RING_INTEGER)
        add_integer(out, value->integer);
    else if (type == PRB_RING_BOOLEAN)
        add_boolean(out, value->integer != 0);
    else if (type == PRB_RING_TEXT)
        add_text(out, value->text, value->len);
    else
        add_real(out, value->real);
}

struct copying {
    const struct prb_taken *taken;
    struct prb_buf rows, own; /* own: what ends each row */
    uint16_t columns;         /* of a row, big endian */
    uint64_t count;
};

static bool add_row(void *context, const struct prb_ring_value *values, struct prb_error *err)
{
    struct copying *copying = context;
    prb_buf_add(&copying->rows, &copying->columns, sizeof copying->columns);
    for (size_t i = 0; i < copying->taken->count; i++)
        add_value(&copying->rows, copying->taken->columns[i].type, &values[i]);
    prb_buf_add(&copying->rows, copying->own.data, copying->own.len);
    copying->count++;
    return prb_buf_ok(&copying->rows) || prb_nomem(err);
}

static void add_own(struct copying *copying, const struct shape *shape, const char *process)
{
    const struct prb_taken *taken = copying->taken;
    size_t columns = taken->count;
    for (int i = 0; i < OWN_COUNT; i++) {
        if (!shape->own[i])
            continue;
        columns++;
        if (i == HOST || i == JOB) {
            const char *text = i == HOST ? taken->host : taken->job;
            add_text(&copying->own, text, strlen(text));
        } else {
            add_integer(&copying->own, i == RANK  ? taken->rank
                                       : i == PID ? taken->pid
                                                  : strtoll(process, NULL, 10));
        }
    }
    copying->columns = htobe16((uint16_t)columns);
}

/* With many ranks each message has few. */
static bool add_rows(struct postgres *postgres, const struct shape *shape,
                     const struct prb_buf *rows, struct prb_error *err)
{
    return prb_buf_ok(rows) ? prb_postgres_copy(&postgres->server, shape->copy, copy_begins,
                                                COPY_BEGINS, rows, err)
                            : prb_nomem(err);
}

static bool add_known(struct postgres *postgres, const struct prb_taken *taken, const char *id,
                      struct prb_error *err)
{
    if (postgres->known_count >= PROCESSES_MAX)
        forget_processes(postgres);
    if (!PRB_GROW(postgres->processes, postgres->known_count, postgres->known_cap))
        return prb_nomem(err);
    struct known *one = &postgres->processes[postgres->known_count];
    *one = (struct known){.key = strdup(taken->key), .pid = taken->pid, .started = taken->started};
    snprintf(one->id, sizeof one->id, "%s", id);
    postgres->known_count += one->key != NULL;
    return one->key != NULL || prb_nomem(err);
}

/* The number of the process; text. */
static bool process_of(struct postgres *postgres, const struct prb_taken *taken, char out[24],
                       struct prb_error *err)
{
    char rank[16], world[16], pid[24], started[24];
    const char *values[] = {taken->key, taken->host, taken->job, rank, world, pid, started};
    for (size_t i = 0; i < postgres->known_count; i++) {
        const struct known *one = &postgres->processes[i];
        if (one->pid == taken->pid && one->started == taken->started &&
            strcmp(one->key, taken->key) == 0) {
            snprintf(out, 24, "%s", one->id);
            return true;
        }
    }
    snprintf(rank, sizeof rank, "%d", taken->rank);
    snprintf(world, sizeof world, "%d", taken->world_size);
    snprintf(pid, sizeof pid, "%" PRId64, taken->pid);
    snprintf(started, sizeof started, "%" PRId64, taken->started);
    struct pg_result *result = prb_postgres_run(
        &postgres->server,
        "WITH new AS (INSERT INTO probing.process(key, host, job, rank, world_size, pid, "
        "started) VALUES($1, $2, $3, $4::integer, $5::integer, $6::bigint, $7::bigint) ON "
        "CONFLICT DO NOTHING RETURNING id) SELECT id FROM new UNION ALL SELECT id FROM "
        "probing.process WHERE key = $1 AND pid = $6::bigint AND started = $7::bigint",
        7, values, err);
    bool good = result && prb_postgres_rows(result) == 1;
    if (result && !good)
        prb_fail(err, PRB_GONE, "PostgreSQL: another record adds the same process");
    if (good)
        snprintf(out, 24, "%s", prb_postgres_value(result, 0, 0));
    prb_postgres_free(result);
    return good && add_known(postgres, taken, out, err);
}

static bool write_lost(struct postgres *postgres, const struct prb_taken *taken,
                       const char *process, struct prb_error *err)
{
    char table[2 * PRB_RING_NAME_MAX + 2], lost[24];
    const char *values[] = {table, process, lost};
    if (!taken->lost)
        return true;
    snprintf(table, sizeof table, "%s.%s", taken->schema, taken->name);
    snprintf(lost, sizeof lost, "%" PRIu64, taken->lost);
    struct pg_result *result =
        prb_postgres_run(&postgres->server,
                         "INSERT INTO probing.gap(table_name, _process, rows) VALUES($1, "
                         "$2::bigint, $3::bigint)",
                         3, values, err);
    prb_postgres_free(result);
    return result != NULL;
}

static bool take(struct prb_sink *sink, const struct prb_taken *taken, uint64_t *rows,
                 struct prb_error *err)
{
    struct postgres *postgres = (struct postgres *)sink;
    struct copying copying = {.taken = taken};
    char process[24];
    const struct shape *shape;
    postgres->server.earlier = false;
    bool good = process_of(postgres, taken, process, err) &&
                (shape = shape_of(postgres, taken, err)) != NULL;
    if (good) {
        add_own(&copying, shape, process);
        good = prb_buf_ok(&copying.own) ? prb_taken_each(taken, add_row, &copying, err)
                                        : prb_nomem(err);
    }
    good = good && (!copying.count || add_rows(postgres, shape, &copying.rows, err)) &&
           write_lost(postgres, taken, process, err);
    *rows = copying.count;
    sink->earlier = postgres->server.earlier;
    prb_buf_deinit(&copying.rows);
    prb_buf_deinit(&copying.own);
    return good;
}

/* ---- life ---- */

static void free_postgres(struct prb_sink *sink)
{
    struct postgres *postgres = (struct postgres *)sink;
    leave(postgres);
    free(postgres->shapes);
    free(postgres->processes);
    free(postgres->url);
    free(postgres);
}

struct prb_sink *prb_sink_postgres(const char *url, int stop_fd, struct prb_error *err)
{
    if (!prb_postgres_library(err))
        return NULL;
    struct postgres *postgres = calloc(1, sizeof *postgres);
    if (!postgres || !(postgres->url = strdup(url))) {
        free(postgres);
        return PRB_NULL(prb_nomem(err));
    }
    postgres->sink = (struct prb_sink){.begin = begin,
                                       .take = take,
                                       .commit = commit,
                                       .rollback = roll_back,
                                       .free = free_postgres,
                                       .name = "the database"};
    postgres->server = (struct prb_postgres){.url = postgres->url, .stop_fd = stop_fd};
    if (connect_to(postgres, err))
        return &postgres->sink;
    if (err && err->code == PRB_GONE)
        err->code = PRB_IO;
    free_postgres(&postgres->sink);
    return NULL;
}

#else

struct prb_sink *prb_sink_postgres(const char *url, int stop_fd, struct prb_error *err)
{
    (void)url, (void)stop_fd;
    return PRB_NULL(prb_fail(err, PRB_UNSUPPORTED, "this build has no PostgreSQL (libpq)"));
}

#endif
