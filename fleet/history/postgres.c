/* See postgres.h. */
#include "fleet/history/postgres.h"

#include "config.h"

#ifdef PRB_SONAME_PQ

#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/dlopen_note.h"
#include "base/lazy.h"

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
    F(PQsendQuery)                                                                                 \
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

#define CONNECTS 15.0 /* s */
#define ANSWERS 120.0 /* s that a statement may take: others may lock a table */

bool prb_postgres_library(struct prb_error *err) { return prb_lazy_open(&library, err); }

/* ---- failures ---- */

bool prb_postgres_is_lost(const struct prb_postgres *postgres)
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
static bool fail_result(struct prb_postgres *postgres, PGresult *result, struct prb_error *err)
{
    const char *state = result ? pq.PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *text = result ? pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    enum prb_code code = PRB_IO;
    if (prb_postgres_is_lost(postgres) ||
        (state && (starts(state, "08") || starts(state, "40") || starts(state, "57P0") ||
                   starts(state, "53300"))))
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
static bool wait_socket(struct prb_postgres *postgres, short events, double until,
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

static bool flush(struct prb_postgres *postgres, double until, struct prb_error *err)
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
static bool next_result(struct prb_postgres *postgres, double until, PGresult **out,
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

bool prb_postgres_end_copy(struct prb_postgres *postgres, const char *why, struct prb_error *err)
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
    postgres->earlier = !copied;
    return good && copied;
}

PGresult *prb_postgres_run(struct prb_postgres *postgres, const char *sql, int count,
                           const char *const *values, struct prb_error *err)
{
    double until = prb_clock_s() + ANSWERS;
    PGresult *last = NULL, *one;
    if (!prb_postgres_end_copy(postgres, NULL, err))
        return NULL;
    if (!postgres->connection || !(count ? pq.PQsendQueryParams(postgres->connection, sql, count,
                                                                NULL, values, NULL, NULL, 0)
                                         : pq.PQsendQuery(postgres->connection, sql)))
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

bool prb_postgres_run_only(struct prb_postgres *postgres, const char *sql, struct prb_error *err)
{
    PGresult *result = prb_postgres_run(postgres, sql, 0, NULL, err);
    if (result)
        pq.PQclear(result);
    return result != NULL;
}

/* ---- the connection ---- */

void prb_postgres_leave(struct prb_postgres *postgres)
{
    if (postgres->connection)
        pq.PQfinish(postgres->connection);
    postgres->connection = NULL;
    free(postgres->copy);
    postgres->copy = NULL;
}

static void no_notice(void *context, const char *text) { (void)context, (void)text; }

bool prb_postgres_connect(struct prb_postgres *postgres, struct prb_error *err)
{
    static const char *const keys[] = {"fallback_application_name", "tcp_user_timeout", "dbname",
                                       "client_encoding", NULL};
    const char *const values[] = {"probing cluster record", "60000", postgres->url, "UTF8", NULL};
    double until = prb_clock_s() + CONNECTS;
    prb_postgres_leave(postgres);
    if (!(postgres->connection = pq.PQconnectStartParams(keys, values, 1)))
        return prb_nomem(err);
    pq.PQsetNoticeProcessor(postgres->connection, no_notice, NULL);
    PostgresPollingStatusType at = PGRES_POLLING_WRITING;
    while (!prb_postgres_is_lost(postgres) && at != PGRES_POLLING_OK &&
           at != PGRES_POLLING_FAILED) {
        if (!wait_socket(postgres, at == PGRES_POLLING_READING ? POLLIN : POLLOUT, until, err)) {
            prb_postgres_leave(postgres);
            return false;
        }
        at = pq.PQconnectPoll(postgres->connection);
    }
    if (prb_postgres_is_lost(postgres) || at == PGRES_POLLING_FAILED) {
        fail_text(PRB_GONE, pq.PQerrorMessage(postgres->connection), err);
        prb_postgres_leave(postgres);
        return false;
    }
    const char *host = pq.PQhost(postgres->connection);
    snprintf(postgres->name, sizeof postgres->name, "the database %s%s%s",
             pq.PQdb(postgres->connection), host && *host && *host != '/' ? " at " : "",
             host && *host != '/' ? host : "");
    if (pq.PQsetnonblocking(postgres->connection, 1) == 0)
        return true;
    fail_text(PRB_GONE, pq.PQerrorMessage(postgres->connection), err);
    prb_postgres_leave(postgres);
    return false;
}

bool prb_postgres_roll_back(struct prb_postgres *postgres)
{
    if (!prb_postgres_is_lost(postgres))
        prb_postgres_end_copy(postgres, "rolled back", NULL);
    PGTransactionStatusType status = prb_postgres_is_lost(postgres)
                                         ? PQTRANS_UNKNOWN
                                         : pq.PQtransactionStatus(postgres->connection);
    /* One that still does something is left: the server undoes it. */
    return status == PQTRANS_IDLE || ((status == PQTRANS_INTRANS || status == PQTRANS_INERROR) &&
                                      prb_postgres_run_only(postgres, "ROLLBACK", NULL));
}

/* ---- results ---- */

int prb_postgres_rows(const PGresult *result) { return pq.PQntuples(result); }

const char *prb_postgres_value(const PGresult *result, int row, int column)
{
    return pq.PQgetvalue(result, row, column);
}

void prb_postgres_free(PGresult *result)
{
    if (result)
        pq.PQclear(result);
}

/* ---- rows ---- */

static bool put(struct prb_postgres *postgres, const char *bytes, size_t len, struct prb_error *err)
{
    return pq.PQputCopyData(postgres->connection, bytes, (int)len) == 1 ||
           fail_result(postgres, NULL, err);
}

bool prb_postgres_copy(struct prb_postgres *postgres, const char *statement, const char *begins,
                       size_t len, const struct prb_buf *rows, struct prb_error *err)
{
    if (!postgres->copy || strcmp(postgres->copy, statement) != 0) {
        char *copy = strdup(statement);
        PGresult *result = copy ? prb_postgres_run(postgres, copy, 0, NULL, err) : NULL;
        if (!result) {
            free(copy);
            return copy ? false : prb_nomem(err);
        }
        pq.PQclear(result);
        postgres->copy = copy;
        if (!put(postgres, begins, len, err))
            return false;
    }
    return put(postgres, rows->data, rows->len, err) &&
           (pq.PQflush(postgres->connection) >= 0 || fail_result(postgres, NULL, err));
}

#endif
