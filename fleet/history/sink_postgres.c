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
#include "fleet/history/postgres_rows.h"
#include "fleet/history/postgres_tables.h"

#define PROCESSES_MAX 4096

struct known {
    char *key; /* of its agent */
    int64_t pid, started;
    char id[24];
};

struct postgres {
    struct prb_sink sink;
    struct prb_postgres server;
    char *url;
    struct prb_postgres_shapes shapes;
    struct known *processes; /* that are there */
    size_t known_count, known_cap;
};

/* ---- the connection ---- */

static void forget_processes(struct postgres *postgres)
{
    while (postgres->known_count)
        free(postgres->processes[--postgres->known_count].key);
}

static void forget(struct postgres *postgres)
{
    prb_postgres_forget_shapes(&postgres->shapes);
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
        "SELECT pg_advisory_xact_lock(" PRB_POSTGRES_MADE_LOCK ")",
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

/* ---- rows ---- */

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
        prb_postgres_add_value(&copying->rows, copying->taken->columns[i].type, &values[i]);
    prb_buf_add(&copying->rows, copying->own.data, copying->own.len);
    copying->count++;
    return prb_buf_ok(&copying->rows) || prb_nomem(err);
}

static void add_own(struct copying *copying, const struct prb_postgres_shape *shape,
                    const char *process)
{
    const struct prb_taken *taken = copying->taken;
    size_t columns = taken->count;
    for (int i = 0; i < PRB_OWN_COUNT; i++) {
        if (!shape->own[i])
            continue;
        columns++;
        if (i == PRB_OWN_HOST || i == PRB_OWN_JOB) {
            const char *text = i == PRB_OWN_HOST ? taken->host : taken->job;
            prb_postgres_add_text(&copying->own, text, strlen(text));
        } else {
            prb_postgres_add_integer(&copying->own, i == PRB_OWN_RANK ? taken->rank
                                                    : i == PRB_OWN_PID
                                                        ? taken->pid
                                                        : strtoll(process, NULL, 10));
        }
    }
    copying->columns = htobe16((uint16_t)columns);
}

/* With many ranks each message has few. */
static bool add_rows(struct postgres *postgres, const struct prb_postgres_shape *shape,
                     const struct prb_buf *rows, struct prb_error *err)
{
    return prb_buf_ok(rows)
               ? prb_postgres_copy(&postgres->server, shape->copy, prb_postgres_copy_begins,
                                   sizeof prb_postgres_copy_begins, rows, err)
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
    const struct prb_postgres_shape *shape;
    postgres->server.earlier = false;
    bool good = process_of(postgres, taken, process, err) &&
                (shape = prb_postgres_shape_of(&postgres->shapes, taken, err)) != NULL;
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
    free(postgres->shapes.items);
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
    postgres->shapes.server = &postgres->server;
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
