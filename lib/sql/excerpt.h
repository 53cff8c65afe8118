/* Errors in a SQL text: the message, the place, and the line with a caret under it. */
#ifndef PRB_SQL_EXCERPT_H
#define PRB_SQL_EXCERPT_H

#include "base/error.h"

/* QUERY: the message, then "(line 2, column 8)", the line around offset and a caret.  Returns
 * false. */
bool prb_query_fail(struct prb_error *err, const char *sql, size_t len, size_t offset,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
