#include "sql/sqlite.h"

#include <ctype.h>

#include "base/buf.h"
#include "base/dlopen_note.h"
#include "base/lazy.h"
#include "config.h"

const sqlite3_api_routines *sqlite3_api;

/* What is called before there is a table; the header's macros would lead to it. */
#undef sqlite3_libversion_number
#undef sqlite3_auto_extension
#undef sqlite3_cancel_auto_extension
#undef sqlite3_open_v2
#undef sqlite3_close_v2
#undef sqlite3_errstr
#define FUNCTIONS(F)                                                                               \
    F(sqlite3_libversion_number)                                                                   \
    F(sqlite3_auto_extension)                                                                      \
    F(sqlite3_cancel_auto_extension)                                                               \
    F(sqlite3_open_v2)                                                                             \
    F(sqlite3_close_v2)                                                                            \
    F(sqlite3_errstr)

static struct {
    FUNCTIONS(PRB_LAZY_POINTER)
} functions;

static const char *const names[] = {FUNCTIONS(PRB_LAZY_NAME)};
PRB_DLOPEN_NOTE(sqlite, PRB_SONAME_SQLITE, "recommended", "SQL, skills and the store");
static struct prb_lazy library = {.soname = PRB_SONAME_SQLITE,
                                  .names = names,
                                  .functions = &functions,
                                  .count = sizeof names / sizeof *names};

#define OLDEST 3034000
#define WITH_RHS_VALUE 3038000 /* sqlite3_error_offset, too */

/* As sqlite3_load_extension(3) calls an extension's entry point. */
static int receive(sqlite3 *sqlite, char **message, const sqlite3_api_routines *api)
{
    (void)sqlite, (void)message;
    sqlite3_api = api;
    return SQLITE_OK;
}

static bool open_any(const char *path, int flags, sqlite3 **out, struct prb_error *err)
{
    if (!prb_lazy_open(&library, err))
        return false;
    if (functions.sqlite3_libversion_number() < OLDEST)
        return prb_fail(err, PRB_UNSUPPORTED, "SQLite %d is too old: 3.34 is needed",
                        functions.sqlite3_libversion_number());
    void (*entry)(void) = (void (*)(void))receive;
    bool first = !sqlite3_api;
    if (first)
        functions.sqlite3_auto_extension(entry);
    int rc = functions.sqlite3_open_v2(path, out, flags, NULL);
    if (first)
        functions.sqlite3_cancel_auto_extension(entry);
    if (rc == SQLITE_OK && sqlite3_api)
        return true;
    functions.sqlite3_close_v2(*out);
    *out = NULL;
    return prb_fail(err, rc == SQLITE_NOMEM ? PRB_NOMEM : PRB_IO, "cannot open SQLite: %s",
                    functions.sqlite3_errstr(rc));
}

/* The table that an older library hands over ends before them. */
static bool is_newer(void) { return functions.sqlite3_libversion_number() >= WITH_RHS_VALUE; }

bool prb_sqlite_tells_constants(void)
{
#ifdef HAVE_STRUCT_SQLITE3_API_ROUTINES_VTAB_RHS_VALUE
    return is_newer();
#else
    return false;
#endif
}

sqlite3_value *prb_sqlite_rhs_value(sqlite3_index_info *info, int term)
{
    sqlite3_value *value = NULL;
#ifdef HAVE_STRUCT_SQLITE3_API_ROUTINES_VTAB_RHS_VALUE
    if (is_newer() && sqlite3_vtab_rhs_value(info, term, &value) != SQLITE_OK)
        return NULL;
#else
    (void)info, (void)term;
#endif
    return value;
}

/* The same release has it. */
static bool call_in(sqlite3_index_info *info, int term, int how)
{
#ifdef HAVE_STRUCT_SQLITE3_API_ROUTINES_VTAB_RHS_VALUE
    return is_newer() && sqlite3_vtab_in(info, term, how);
#else
    (void)info, (void)term, (void)how;
    return false;
#endif
}

bool prb_sqlite_is_in(sqlite3_index_info *info, int term) { return call_in(info, term, -1); }

void prb_sqlite_take_in(sqlite3_index_info *info, int term) { (void)!call_in(info, term, 1); }

int prb_sqlite_error_offset(sqlite3 *sqlite)
{
#ifdef HAVE_STRUCT_SQLITE3_API_ROUTINES_ERROR_OFFSET
    return is_newer() ? sqlite3_error_offset(sqlite) : -1;
#else
    (void)sqlite, (void)is_newer;
    return -1;
#endif
}

bool prb_sqlite_open(sqlite3 **out, struct prb_error *err)
{
    return open_any(":memory:",
                    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY |
                        SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                    out, err);
}

bool prb_sqlite_open_file(const char *path, bool write, sqlite3 **out, struct prb_error *err)
{
    int how = write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    if (!open_any(path, how | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, out, err))
        return prb_error_prefix(err, "%s", path);
    sqlite3_db_config(*out, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*out, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return true;
}

bool prb_sqlite_open_finished(const char *path, sqlite3 **out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf uri = {0};
    prb_buf_adds(&uri, "file:");
    for (const unsigned char *at = (const unsigned char *)path; *at; at++) {
        if (*at == '/' || *at == '.' || *at == '-' || *at == '_' || isalnum(*at))
            prb_buf_addc(&uri, (char)*at);
        else
            prb_buf_addf(&uri, "%%%02x", *at);
    }
    prb_buf_adds(&uri, "?immutable=1");
    if (!prb_buf_ok(&uri))
        return prb_nomem(err);
    if (!open_any(uri.data,
                  SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
                      SQLITE_OPEN_PRIVATECACHE,
                  out, err))
        return prb_error_prefix(err, "%s", path);
    sqlite3_db_config(*out, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*out, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return true;
}
