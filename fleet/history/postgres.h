/*
 * A connection to a PostgreSQL server, by libpq, which is opened when it is first needed.  Nothing
 * here waits in libpq, so that a server that does not answer can be left.
 *
 * Errors: GONE (the server went, or wants it once more), CORRUPT (what it was given), PERMISSION, TIMEOUT, IO.
 */
#ifndef PRB_FLEET_HISTORY_POSTGRES_H
#define PRB_FLEET_HISTORY_POSTGRES_H

#include "base/buf.h"
#include "base/error.h"

/* As libpq has them. */
struct pg_conn;
struct pg_result;

struct prb_postgres {
    const char *url; /* borrowed */
    int stop_fd;     /* readable: give up what is waited for; -1: none */
    struct pg_conn *connection;
    char *copy;     /* the COPY that goes on; NULL: none does */
    bool earlier;   /* the last COPY failed: rows that it was given before may be at fault */
    char name[200]; /* for people; without a password */
};

/* UNSUPPORTED: no libpq. */
bool prb_postgres_library(struct prb_error *err);
/* Anew. */
bool prb_postgres_connect(struct prb_postgres *postgres, struct prb_error *err);
bool prb_postgres_is_lost(const struct prb_postgres *postgres);
void prb_postgres_leave(struct prb_postgres *postgres);

/* The last result is the statement's, and the caller's; a failed one is none.  Ends a COPY before.  Without values
 * there may be several statements, of which the first that fails is the last. */
struct pg_result *prb_postgres_run(struct prb_postgres *postgres, const char *sql, int count,
                                   const char *const *values, struct prb_error *err);
bool prb_postgres_run_only(struct prb_postgres *postgres, const char *sql, struct prb_error *err);
/* False: the connection is of no use any more. */
bool prb_postgres_roll_back(struct prb_postgres *postgres);

int prb_postgres_rows(const struct pg_result *result);
const char *prb_postgres_value(const struct pg_result *result, int row, int column);
void prb_postgres_free(struct pg_result *result);

/* The server takes them while the caller goes on.  One COPY goes on for all rows of a statement, until
 * another is run; begins: what each COPY begins with. */
bool prb_postgres_copy(struct prb_postgres *postgres, const char *statement, const char *begins,
                       size_t len, const struct prb_buf *rows, struct prb_error *err);
/* why: of one that is given up, else NULL. */
bool prb_postgres_end_copy(struct prb_postgres *postgres, const char *why, struct prb_error *err);

#endif
