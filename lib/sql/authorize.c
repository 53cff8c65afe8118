/* What statements may do: read, and no more than the limits allow. */
#include <strings.h>

#include "sql/db.h"
#include "sql/dialect.h"

/* Everything but reading is refused; refused says what was tried. */
static const struct {
    int action;
    const char *what; /* NULL: allowed */
} actions[] = {
    {SQLITE_SELECT, NULL},
    {SQLITE_READ, NULL},
    {SQLITE_FUNCTION, NULL},
    {SQLITE_RECURSIVE, NULL},
    {SQLITE_INSERT, "INSERT"},
    {SQLITE_UPDATE, "UPDATE"},
    {SQLITE_DELETE, "DELETE"},
    {SQLITE_PRAGMA, "PRAGMA"},
    {SQLITE_ATTACH, "ATTACH"},
    {SQLITE_DETACH, "DETACH"},
    {SQLITE_TRANSACTION, "a transaction"},
    {SQLITE_SAVEPOINT, "SAVEPOINT"},
    {SQLITE_ANALYZE, "ANALYZE"},
    {SQLITE_REINDEX, "REINDEX"},
};

static const char *const refused_functions[] = {"load_extension", "fts3_tokenizer"};

static int authorize(void *context, int action, const char *a, const char *b, const char *c,
                     const char *d)
{
    (void)c, (void)d;
    struct prb_db *db = context;
    /* Declaring the table of pragma_*() is an UPDATE of the schema, which nobody wrote. */
    bool schema = action == SQLITE_UPDATE && a && strcasecmp(a, "sqlite_master") == 0;
    db->refused = "a change of the schema";
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (actions[i].action == action && !schema)
            db->refused = actions[i].what;
    for (size_t i = 0; i < 2 && action == SQLITE_FUNCTION && b; i++)
        if (strcasecmp(b, refused_functions[i]) == 0)
            db->refused = refused_functions[i];
    return db->refused ? SQLITE_DENY : SQLITE_OK;
}

void prb_db_authorize(struct prb_db *db) { sqlite3_set_authorizer(db->sqlite, authorize, db); }

static const struct {
    int limit, value;
} limits[] = {
    {SQLITE_LIMIT_LENGTH, 64 << 20},     {SQLITE_LIMIT_SQL_LENGTH, 2 * (int)PRB_SQL_MAX},
    {SQLITE_LIMIT_COLUMN, 1000},         {SQLITE_LIMIT_EXPR_DEPTH, 200},
    {SQLITE_LIMIT_COMPOUND_SELECT, 100}, {SQLITE_LIMIT_FUNCTION_ARG, 100},
    {SQLITE_LIMIT_ATTACHED, 10},         {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 100}, {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
    {SQLITE_LIMIT_WORKER_THREADS, 0},    {SQLITE_LIMIT_VDBE_OP, 1000000},
};

void prb_db_harden(sqlite3 *sqlite)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(sqlite, limits[i].limit, limits[i].value);
    /* "x" is a name, never a text: a mistyped column must not become a constant. */
    sqlite3_db_config(sqlite, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
    sqlite3_db_config(sqlite, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
    sqlite3_db_config(sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(sqlite, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
}
