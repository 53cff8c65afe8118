/* x REGEXP pattern: POSIX extended regular expressions, bounded so that a pattern cannot eat time
 * or memory. */
#ifndef PRB_SQL_REGEX_H
#define PRB_SQL_REGEX_H

#include "sql/sqlite.h"

void prb_sql_regexp(sqlite3_context *context, int argc, sqlite3_value **argv); /* (pattern, x) */
void prb_sql_regexp_like(sqlite3_context *context, int argc,
                         sqlite3_value **argv); /* (x, pattern) */

#endif
