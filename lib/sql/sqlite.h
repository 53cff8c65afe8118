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

/* A connection in memory of its own.  UNSUPPORTED: no SQLite, or one that is too old. */
bool prb_sqlite_open(sqlite3 **out, struct prb_error *err);

/* A file: to be made anew, or to be read, with nothing of it trusted.  CORRUPT: it is no
 * database. */
bool prb_sqlite_open_file(const char *path, bool write, sqlite3 **out, struct prb_error *err);

/* A file that nobody writes, which is read without a lock and without a file beside it. */
bool prb_sqlite_open_finished(const char *path, sqlite3 **out, struct prb_error *err);

#endif
