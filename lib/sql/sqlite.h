/*
 * SQLite, opened with the first connection (base/lazy.h).  Its functions are called as an extension
 * calls them, through the table of sqlite3ext.h, which SQLite itself hands over; so nothing of ours
 * names them, and code reads as any that uses SQLite.
 */
#ifndef PRB_SQL_SQLITE_H
#define PRB_SQL_SQLITE_H

#include <sqlite3ext.h>

#include "base/error.h"

extern const sqlite3_api_routines *sqlite3_api; /* set by the first prb_sqlite_open */

/* Since 3.38; of older ones no term has a constant, so more is read than a statement needs. */
#ifndef SQLITE_INDEX_CONSTRAINT_LIMIT
#define SQLITE_INDEX_CONSTRAINT_LIMIT 73
#define SQLITE_INDEX_CONSTRAINT_OFFSET 74
#endif

/* In xBestIndex: the constant of a term, borrowed until the call ends; NULL: it is none. */
sqlite3_value *prb_sqlite_rhs_value(sqlite3_index_info *info, int term);
/* In xBestIndex: whether a term is an IN, not one `=`; and have all of its values come at once. */
bool prb_sqlite_is_in(sqlite3_index_info *info, int term);
void prb_sqlite_take_in(sqlite3_index_info *info, int term);
bool prb_sqlite_tells_constants(void);
/* Where in the text the last statement is wrong; -1: not known. */
int prb_sqlite_error_offset(sqlite3 *sqlite);

/* A connection in memory of its own.  UNSUPPORTED: no SQLite, or one that is too old. */
bool prb_sqlite_open(sqlite3 **out, struct prb_error *err);

/* A file: to be made anew, or to be read, with nothing of it trusted.  CORRUPT: it is no
 * database. */
bool prb_sqlite_open_file(const char *path, bool write, sqlite3 **out, struct prb_error *err);

/* A file that nobody writes, which is read without a lock and without a file beside it. */
bool prb_sqlite_open_finished(const char *path, sqlite3 **out, struct prb_error *err);

#endif
