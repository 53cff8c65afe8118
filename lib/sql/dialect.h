/*
 * What users write beyond SQLite's SQL, brought into it token by token, never by text search.
 *
 * Rewritten inside a query (the words in any case, not when quoted or a part of a dotted name):
 *     interval '5 minutes', interval '1 hour 30 min', interval 5 minute  → seconds, REAL
 *     current_timestamp                                                  → now()
 *     extract(hour from t)                                               → date_part('hour', t)
 * and where rows are fetched from other processes (struct prb_dialect):
 *     now() - 60, now() - interval '5 minutes'                           → the time, a constant
 *     global.python.backtrace                                            → python.backtrace
 * Statements of their own: SHOW TABLES, DESCRIBE t, SHOW CREATE TABLE t, SHOW FUNCTIONS, SHOW ALL,
 * SHOW key, SET key = value.  To add a form: a line in a table of dialect.c. Pure: knows no table
 * and no setting.
 */
#ifndef PRB_SQL_DIALECT_H
#define PRB_SQL_DIALECT_H

#include "base/buf.h"
#include "base/error.h"
#include "sql/token.h"

/* Bytes of the text of one prb_db_query. */
#define PRB_SQL_MAX ((size_t)1 << 20)
#define PRB_NAME_MAX 256

enum prb_statement_kind {
    PRB_STATEMENT_EMPTY, /* nothing but space and comments */
    PRB_STATEMENT_QUERY, /* sql, for SQLite */
    PRB_STATEMENT_SHOW_TABLES,
    PRB_STATEMENT_DESCRIBE,    /* name */
    PRB_STATEMENT_SHOW_CREATE, /* name */
    PRB_STATEMENT_SHOW_FUNCTIONS,
    PRB_STATEMENT_SHOW_SETTINGS,
    PRB_STATEMENT_SHOW_SETTING, /* name: the key */
    PRB_STATEMENT_SET,          /* name: the key; value */
};

/* How a text is read. */
struct prb_dialect {
    double now;  /* s since the epoch, which now() is; 0: it is not known */
    bool global; /* `global.` before a table's name says what is so without it */
};

struct prb_edit {
    size_t offset, len;         /* what was replaced, in the user's text */
    size_t out_offset, out_len; /* by what, in sql */
};

struct prb_statement {
    enum prb_statement_kind kind;
    struct prb_buf sql;
    struct prb_edit *edits; /* ascending */
    size_t edit_count, edit_cap;
    char schema[PRB_NAME_MAX]; /* of name, or "" */
    char name[PRB_NAME_MAX];
    char value[PRB_NAME_MAX];
    size_t name_offset, value_offset; /* in the user's text */
    size_t offset, end;               /* of the statement there */
};

void prb_statement_deinit(struct prb_statement *statement);
PRB_DEFINE_AUTO(prb_statement, struct prb_statement, prb_statement_deinit)

/*
 * The statement that begins at *offset of a text of len bytes; *offset moves behind it and its
 * semicolon. Errors: QUERY with the position shown.
 */
/* dialect: NULL is all 0. */
bool prb_dialect_next(const struct prb_dialect *dialect, const char *text, size_t len,
                      size_t *offset, struct prb_statement *out, struct prb_error *err);

/* Where a byte of statement->sql is in the user's text. */
size_t prb_statement_origin(const struct prb_statement *statement, size_t sql_offset);

/* Seconds of an interval such as "5 minutes", "1 hour 30 min", "-2.5 days": microseconds in *out.
 * A month is 30 days and a year 365.25, as in PostgreSQL's epoch of an interval. */
bool prb_interval_parse(const char *text, size_t len, int64_t *out);

#endif
