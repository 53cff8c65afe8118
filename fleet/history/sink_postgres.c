/*
 * A PostgreSQL database, by libpq, which is opened when it is first needed: see sink.h.
 *
 * A table of the stream is python.NAME (what the machine says of a process: host.NAME): its columns,
 * then rank, host, job and pid where it has none of that name, and _process.  integer is bigint, real
 * and time (s since the epoch) are double precision.  Columns that come later are added; one that
 * comes with another type is NAME_TYPE.  Beside them the schema probing: process, gap (rows that
 * were overwritten before they were read), and position, how far each stream was taken.
 *
 * Nothing here waits in libpq, so that a server that does not answer can be left.
 */
#include "fleet/history/sink.h"

#include <string.h>

#include "config.h"

bool prb_sink_is_postgres(const char *target)
{
    return strncmp(target, "postgresql://", 13) == 0 || strncmp(target, "postgres://", 11) == 0;
}

#ifdef PRB_SONAME_PQ

#include <inttypes.h>
#include <libpq-fe.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/dlopen_note.h"
#include "base/lazy.h"
#include "store/chunk.h"

#define FUNCTIONS(F)                                                                               \
    F(PQconnectStartParams)                                                                        \
    F(PQconnectPoll)                                                                               \
    F(PQsocket)                                                                                    \
    F(PQstatus)                                                                                    \
    F(PQtransactionStatus)                                                                         \
    F(PQerrorMessage)                                                                              \
    F(PQfinish)                                                                                    \
    F(PQdb)                                                                                        \
    F(PQhost)                                                                                      \
    F(PQsetnonblocking)                                                                            \
    F(PQsetNoticeProcessor)                                                                        \
    F(PQsendQueryParams)                                                                           \
    F(PQputCopyData)                                                                               \
    F(PQputCopyEnd)                                                                                \
    F(PQflush)                                                                                     \
    F(PQconsumeInput)                                                                              \
    F(PQisBusy)                                                                                    \
    F(PQgetResult)                                                                                 \
    F(PQresultStatus)                                                                              \
    F(PQresultErrorField)                                                                          \
    F(PQntuples)                                                                                   \
    F(PQgetvalue)                                                                                  \
    F(PQclear)
static struct {
    FUNCTIONS(PRB_LAZY_POINTER)
} pq;
static const char *const names[] = {FUNCTIONS(PRB_LAZY_NAME)};
PRB_DLOPEN_NOTE(pq, PRB_SONAME_PQ, "suggested", "history in PostgreSQL");
static struct prb_lazy library = {PRB_SONAME_PQ, names, &pq, sizeof names / sizeof *names, false};

#define CONNECTS 15.0  /* s */
#define ANSWERS 120.0  /* s that a statement may take: others may lock a table */
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
    char *url;
    int stop_fd;
    PGconn *connection;
    struct shape *shapes;
    size_t count, cap;
    struct known *processes; /* that are there */
    size_t known_count, known_cap;
    char *copy; /* the COPY that goes on; NULL: none does */
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

/* ---- failures ---- */

static bool is_lost(const struct postgres *postgres)
{
    return !postgres->connection || pq.PQstatus(postgres->connection) == CONNECTION_BAD;
}

/* In one line. */
static bool fail_text(enum prb_code code, const char *text, struct prb_error *err)
{
    char line[300];
    size_t len = 0;
    for (; *text && len + 3 < sizeof line; text++)
        if (*text == '\n') {
            if (text[1])
                line[len++] = ';', line[len++] = ' ';
        } else if (*text != '\t' || len == 0 || line[len - 1] != ' ')
            line[len++] = *text == '\t' ? ' ' : *text;
    line[len] = '\0';
    return prb_fail(err, code, "PostgreSQL: %s", line);
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* GONE: the server went, or wants it once more.  CORRUPT: what it was given. */
static bool fail_result(struct postgres *postgres, PGresult *result, struct prb_error *err)
{
    const char *state = result ? pq.PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *text = result ? pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    enum prb_code code = PRB_IO;
    if (is_lost(postgres) || (state && (starts(state, "08") || starts(state, "40") ||
                                        starts(state, "57P0") || starts(state, "53300"))))
        code = PRB_GONE;
    else if (state && (starts(state, "22") || starts(state, "54") || starts(state, "42701")))
        code = PRB_CORRUPT;
    else if (state && starts(state, "42501"))
        code = PRB_PERMISSION;
    fail_text(code, text ? text : pq.PQerrorMessage(postgres->connection), err);
    if (code == PRB_PERMISSION)
        prb_error_remedy(err, "GRANT CREATE ON DATABASE … TO …; or the tables belong to another "
                              "user");
    return false;
}

/* ---- waiting ---- */

/* Until the socket is ready or so. */
static bool wait_socket(struct postgres *postgres, short events, double until,
                        struct prb_error *err)
{
    double now = prb_clock_s();
    struct pollfd fds[] = {{.fd = pq.PQsocket(postgres->connection), .events = events},
                           {.fd = postgres->stop_fd, .events = POLLIN}};
    if (fds[0].fd < 0)
        return fail_text(PRB_GONE, pq.PQerrorMessage(postgres->connection), err);
    if (now >= until)
        return prb_fail(err, PRB_TIMEOUT, "PostgreSQL does not answer");
    poll(fds, 2, (int)((until - now) * 1e3) + 1);
    return !fds[1].revents || prb_fail(err, PRB_TIMEOUT, "ended while PostgreSQL was waited for");
}

static bool flush(struct postgres *postgres, double until, struct prb_error *err)
{
    for (int left; (left = pq.PQflush(postgres->connection)) != 0;) {
        if (left < 0)
            return fail_result(postgres, NULL, err);
        if (!wait_socket(postgres, POLLIN | POLLOUT, until, err))
            return false;
        if (!pq.PQconsumeInput(postgres->connection))
            return fail_result(postgres, NULL, err);
    }
    return true;
}

/* The next result; NULL without an error: there is none. */
static bool next_result(struct postgres *postgres, double until, PGresult **out,
                        struct prb_error *err)
{
    while (pq.PQisBusy(postgres->connection)) {
        if (!wait_socket(postgres, POLLIN, until, err))
            return false;
        if (!pq.PQconsumeInput(postgres->connection))
            return fail_result(postgres, NULL, err);
    }
    *out = pq.PQgetResult(postgres->connection);
    return true;
}

/* why: of one that is given up, else NULL. */
static bool end_copy(struct postgres *postgres, const char *why, struct prb_error *err)
{
    double until = prb_clock_s() + ANSWERS;
    bool copied = false;
    PGresult *one;
    if (!postgres->copy)
        return true;
    free(postgres->copy);
    postgres->copy = NULL;
    bool good = pq.PQputCopyEnd(postgres->connection, why) == 1 || fail_result(postgres, NULL, err);
    good = good && flush(postgres, until, err);
    while (good && (good = next_result(postgres, until, &one, err)) && one) {
        copied = pq.PQresultStatus(one) == PGRES_COMMAND_OK;
        if (!copied)
            fail_result(postgres, one, err);
        pq.PQclear(one);
    }
    postgres->sink.earlier = !copied;
    return good && copied;
}

/* The last result is the statement's, and the caller's; a failed one is none. */
static PGresult *run(struct postgres *postgres, const char *sql, int count,
                     const char *const *values, struct prb_error *err)
{
    double until = prb_clock_s() + ANSWERS;
    PGresult *last = NULL, *one;
    if (!end_copy(postgres, NULL, err))
        return NULL;
    if (!postgres->connection ||
        !pq.PQsendQueryParams(postgres->connection, sql, count, NULL, values, NULL, NULL, 0))
        return PRB_NULL(fail_result(postgres, NULL, err));
    bool good = flush(postgres, until, err);
    while (good && (good = next_result(postgres, until, &one, err)) && one) {
        if (last)
            pq.PQclear(last);
        last = one;
        if (pq.PQresultStatus(one) == PGRES_COPY_IN)
            return one;
    }
    ExecStatusType status = good && last ? pq.PQresultStatus(last) : PGRES_FATAL_ERROR;
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return last;
    if (good)
        fail_result(postgres, last, err);
    if (last)
        pq.PQclear(last);
    return NULL;
}

static bool run_only(struct postgres *postgres, const char *sql, struct prb_error *err)
{
    PGresult *result = run(postgres, sql, 0, NULL, err);
    if (result)
        pq.PQclear(result);
    return result != NULL;
}

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
    if (postgres->connection)
        pq.PQfinish(postgres->connection);
    postgres->connection = NULL;
    free(postgres->copy);
    postgres->copy = NULL;
    forget(postgres);
}

static void no_notice(void *context, const char *text) { (void)context, (void)text; }

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
    PGresult *found =
        run(postgres,
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'probing' AND tablename IN "
            "('position', 'process', 'gap')",
            0, NULL, err);
    if (!found)
        return false;
    bool there = strcmp(pq.PQgetvalue(found, 0, 0), "3") == 0;
    pq.PQclear(found);
    /* One who may only write finds what another has made. */
    for (size_t i = 0; !there && i < sizeof statements / sizeof *statements; i++)
        if (!run_only(postgres, statements[i], err))
            return false;
    return true;
}

static bool connect_to(struct postgres *postgres, struct prb_error *err)
{
    static const char *const keys[] = {"fallback_application_name", "tcp_user_timeout", "dbname",
                                       "client_encoding", NULL};
    const char *const values[] = {"probing cluster record", "60000", postgres->url, "UTF8", NULL};
    double until = prb_clock_s() + CONNECTS;
    if (postgres->connection && !is_lost(postgres))
        return true;
    leave(postgres);
    if (!(postgres->connection = pq.PQconnectStartParams(keys, values, 1)))
        return prb_nomem(err);
    pq.PQsetNoticeProcessor(postgres->connection, no_notice, NULL);
    PostgresPollingStatusType at = PGRES_POLLING_WRITING;
    while (!is_lost(postgres) && at != PGRES_POLLING_OK && at != PGRES_POLLING_FAILED) {
        if (!wait_socket(postgres, at == PGRES_POLLING_READING ? POLLIN : POLLOUT, until, err)) {
            leave(postgres);
            return false;
        }
        at = pq.PQconnectPoll(postgres->connection);
    }
    if (is_lost(postgres) || at == PGRES_POLLING_FAILED) {
        fail_text(PRB_GONE, pq.PQerrorMessage(postgres->connection), err);
        leave(postgres);
        return false;
    }
    const char *host = pq.PQhost(postgres->connection);
    snprintf(postgres->sink.name, sizeof postgres->sink.name, "the database %s%s%s",
             pq.PQdb(postgres->connection), host && *host && *host != '/' ? " at " : "",
             host && *host != '/' ? host : "");
    if (pq.PQsetnonblocking(postgres->connection, 1) == 0 && make_schema(postgres, err))
        return true;
    leave(postgres);
    return false;
}

/* ---- transactions ---- */

static void roll_back(struct prb_sink *sink)
{
    struct postgres *postgres = (struct postgres *)sink;
    forget(postgres); /* what they say may be undone now */
    if (!is_lost(postgres))
        end_copy(postgres, "rolled back", NULL);
    PGTransactionStatusType status =
        is_lost(postgres) ? PQTRANS_UNKNOWN : pq.PQtransactionStatus(postgres->connection);
    if (status == PQTRANS_IDLE)
        return;
    /* One that still does something is left: the server undoes it. */
    if ((status != PQTRANS_INTRANS && status != PQTRANS_INERROR) ||
        !run_only(postgres, "ROLLBACK", NULL))
        leave(postgres);
}

static bool begin(struct prb_sink *sink, uint64_t stream, uint64_t *position, bool *again,
                  struct prb_error *err)
{
    struct postgres *postgres = (struct postgres *)sink;
    struct prb_error why = {0};
    char text[24];
    const char *values[] = {text};
    PGresult *result = NULL;
    snprintf(text, sizeof text, "%" PRId64, (int64_t)stream);
    if (connect_to(postgres, &why) && run_only(postgres, "BEGIN", &why) &&
        (result = run(postgres,
                      "INSERT INTO probing.position(stream, number) VALUES($1::bigint, 0) ON "
                      "CONFLICT DO NOTHING",
                      1, values, &why))) {
        pq.PQclear(result);
        /* Another record of the same stream waits here. */
        result = run(postgres,
                     "SELECT number FROM probing.position WHERE stream = $1::bigint FOR UPDATE", 1,
                     values, &why);
    }
    *again = why.code == PRB_GONE;
    if (result && pq.PQntuples(result) == 1) {
        *position = strtoull(pq.PQgetvalue(result, 0, 0), NULL, 10);
        pq.PQclear(result);
        return true;
    }
    if (result) {
        pq.PQclear(result);
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
    char texts[2][24];
    const char *values[] = {texts[0], texts[1]};
    snprintf(texts[0], sizeof texts[0], "%" PRId64, (int64_t)stream);
    snprintf(texts[1], sizeof texts[1], "%" PRIu64, position);
    PGresult *result = run(postgres,
                           "UPDATE probing.position SET number = $2::bigint, taken = now() WHERE "
                           "stream = $1::bigint",
                           2, values, &why);
    if (result)
        pq.PQclear(result);
    bool good = result && run_only(postgres, "COMMIT", &why);
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
static int is_there(PGresult *columns, const char *name, enum prb_ring_type type)
{
    for (int i = 0; i < pq.PQntuples(columns); i++)
        if (strcmp(pq.PQgetvalue(columns, i, 0), name) == 0)
            return strcmp(pq.PQgetvalue(columns, i, 1), types[type].name) == 0 ? 1 : -1;
    return 0;
}

/* One column into both statements. */
static bool add_column(PGresult *columns, const char *name, enum prb_ring_type type,
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

static PGresult *columns_of(struct postgres *postgres, const struct prb_taken *taken,
                            struct prb_error *err)
{
    const char *values[] = {taken->schema, taken->name};
    return run(postgres,
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
    PGresult *columns = columns_of(postgres, taken, err);
    if (!columns)
        return false;
    bool table = pq.PQntuples(columns) > 0, good = true;
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
    pq.PQclear(columns);
    if (!good)
        return false;
    prb_buf_adds(&copy, ") FROM STDIN");
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
        if (!run_only(postgres,
                      strcmp(taken->schema, "python") == 0 ? "CREATE SCHEMA IF NOT EXISTS python"
                                                           : "CREATE SCHEMA IF NOT EXISTS host",
                      err) ||
            !(prb_buf_ok(&create) ? run_only(postgres, create.data, err) : prb_nomem(err)))
            return false;
    }
    if (!run_only(postgres, sql.data, err))
        return false;
    if (table || time >= taken->count)
        return true;
    /* Rows come in the order of time, nearly: such an index is small. */
    PRB_AUTO(prb_buf) struct prb_buf index = {0};
    prb_buf_addf(&index, "CREATE INDEX ON \"%s\".\"%s\" USING brin (\"%s\")", taken->schema,
                 taken->name, taken->columns[time].name);
    return prb_buf_ok(&index) ? run_only(postgres, index.data, err) : prb_nomem(err);
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
    if (!run_only(postgres, "SELECT pg_advisory_xact_lock(" MADE_LOCK ")", err) ||
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

/* A text has no NUL there. */
static void add_text(struct prb_buf *out, const char *text, size_t len)
{
    static const char escapes[][3] = {
        ['\\'] = "\\\\", ['\t'] = "\\t", ['\n'] = "\\n", ['\r'] = "\\r"};
    for (size_t i = 0, plain = 0; i <= len; i++) {
        unsigned char c = i < len ? (unsigned char)text[i] : 0;
        if (i < len && c && (c >= sizeof escapes / sizeof *escapes || !escapes[c][0]))
            continue;
        prb_buf_add(out, text + plain, i - plain);
        plain = i + 1;
        if (i < len)
            prb_buf_adds(out, c ? escapes[c] : "\xe2\x90\x80"); /* the sign for it */
    }
}

/* A printf of each costs a fifth of the whole. */
static void add_integer(struct prb_buf *out, int64_t value)
{
    char text[24], *at = text + sizeof text;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--at = '-';
    prb_buf_add(out, at, (size_t)(text + sizeof text - at));
}

static void add_value(struct prb_buf *out, enum prb_ring_type type,
                      const struct prb_ring_value *value)
{
    if (value->null)
        prb_buf_adds(out, "\\N");
    else if (type == PRB_RING_INTEGER)
        add_integer(out, value->integer);
    else if (type == PRB_RING_BOOLEAN)
        prb_buf_addc(out, value->integer ? 't' : 'f');
    else if (type == PRB_RING_TEXT)
        add_text(out, value->text, value->len);
    else if (isfinite(value->real))
        prb_buf_addf(out, "%.17g", value->real);
    else
        prb_buf_adds(out, isnan(value->real) ? "NaN" : value->real > 0 ? "Infinity" : "-Infinity");
}

struct copying {
    const struct prb_taken *taken;
    struct prb_buf text, own; /* own: what ends each row */
    uint64_t rows;
};

static bool add_row(void *context, const struct prb_ring_value *values, struct prb_error *err)
{
    struct copying *copying = context;
    for (size_t i = 0; i < copying->taken->count; i++) {
        if (i)
            prb_buf_addc(&copying->text, '\t');
        add_value(&copying->text, copying->taken->columns[i].type, &values[i]);
    }
    prb_buf_add(&copying->text, copying->own.data, copying->own.len);
    copying->rows++;
    return prb_buf_ok(&copying->text) || prb_nomem(err);
}

static void add_own(struct prb_buf *out, const struct prb_taken *taken, const struct shape *shape,
                    const char *process)
{
    for (int i = 0; i < OWN_COUNT; i++) {
        if (!shape->own[i])
            continue;
        prb_buf_addc(out, '\t');
        if (i == HOST || i == JOB) {
            const char *text = i == HOST ? taken->host : taken->job;
            add_text(out, text, strlen(text));
        } else if (i == PROCESS)
            prb_buf_adds(out, process);
        else
            prb_buf_addf(out, "%" PRId64, i == RANK ? taken->rank : taken->pid);
    }
    prb_buf_addc(out, '\n');
}

/* The server takes them while the next message is read.  With many ranks each message has few: one COPY goes on for
 * all of a table, until another statement is run. */
static bool add_rows(struct postgres *postgres, const struct shape *shape,
                     const struct prb_buf *text, struct prb_error *err)
{
    if (!prb_buf_ok(text))
        return prb_nomem(err);
    if (!postgres->copy || strcmp(postgres->copy, shape->copy) != 0) {
        char *copy = strdup(shape->copy);
        PGresult *result = copy ? run(postgres, copy, 0, NULL, err) : NULL;
        if (!result) {
            free(copy);
            return copy ? false : prb_nomem(err);
        }
        pq.PQclear(result);
        postgres->copy = copy;
    }
    return (pq.PQputCopyData(postgres->connection, text->data, (int)text->len) == 1 &&
            pq.PQflush(postgres->connection) >= 0) ||
           fail_result(postgres, NULL, err);
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
    PGresult *result =
        run(postgres,
            "WITH new AS (INSERT INTO probing.process(key, host, job, rank, world_size, pid, "
            "started) VALUES($1, $2, $3, $4::integer, $5::integer, $6::bigint, $7::bigint) ON "
            "CONFLICT DO NOTHING RETURNING id) SELECT id FROM new UNION ALL SELECT id FROM "
            "probing.process WHERE key = $1 AND pid = $6::bigint AND started = $7::bigint",
            7, values, err);
    bool good = result && pq.PQntuples(result) == 1;
    if (result && !good)
        prb_fail(err, PRB_GONE, "PostgreSQL: another record adds the same process");
    if (good)
        snprintf(out, 24, "%s", pq.PQgetvalue(result, 0, 0));
    if (result)
        pq.PQclear(result);
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
    PGresult *result = run(postgres,
                           "INSERT INTO probing.gap(table_name, _process, rows) VALUES($1, "
                           "$2::bigint, $3::bigint)",
                           3, values, err);
    if (result)
        pq.PQclear(result);
    return result != NULL;
}

static bool take(struct prb_sink *sink, const struct prb_taken *taken, uint64_t *rows,
                 struct prb_error *err)
{
    struct postgres *postgres = (struct postgres *)sink;
    struct copying copying = {.taken = taken};
    char process[24];
    const struct shape *shape;
    sink->earlier = false;
    bool good = process_of(postgres, taken, process, err) &&
                (shape = shape_of(postgres, taken, err)) != NULL;
    if (good) {
        add_own(&copying.own, taken, shape, process);
        good = prb_buf_ok(&copying.own) ? prb_taken_each(taken, add_row, &copying, err)
                                        : prb_nomem(err);
    }
    good = good && (!copying.rows || add_rows(postgres, shape, &copying.text, err)) &&
           write_lost(postgres, taken, process, err);
    *rows = copying.rows;
    prb_buf_deinit(&copying.text);
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
    if (!prb_lazy_open(&library, err))
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
    postgres->stop_fd = stop_fd;
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
