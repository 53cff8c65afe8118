/* Tables that watch a live target for some time: their arguments. */
#ifndef PRB_TABLE_DURATION_H
#define PRB_TABLE_DURATION_H

#include "sql/table.h"

/* A hidden column that is a number above 0; *out stays when it is not given.  QUERY. */
bool prb_rows_number(const struct prb_rows *rows, const char *column, double most, double *out,
                     struct prb_error *err);
/* The argument "seconds" of a table of a live target.  QUERY: longer than a query may take; USAGE:
 * the target does not run. */
bool prb_rows_seconds(const struct prb_rows *rows, double *out, struct prb_error *err);
/* Whether the statement may still take time: a struct prb_rows. */
bool prb_rows_in_time(void *rows);

#endif
