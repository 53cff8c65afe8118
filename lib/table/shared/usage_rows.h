/* Tables of what threads used while a statement watches them. */
#ifndef PRB_TABLE_USAGE_ROWS_H
#define PRB_TABLE_USAGE_ROWS_H

#include "host/usage.h"
#include "sql/table.h"

/* A row of one thread, or of the process (tid 0).  gil_pct: < 0: not known. */
typedef void prb_usage_row_fn(struct prb_rows *rows, const struct prb_usage_count *before,
                              const struct prb_usage_count *after, double gil_pct);

/* Watch for the argument "seconds", 1 when it is not given, and make a row of the process and of
 * each thread.  One that began meanwhile has none: nothing is known of its beginning.
 * what: a sum of these, which cost more. */
#define PRB_USAGE_SWITCHES 1u /* host/usage.h */
#define PRB_USAGE_GIL 2u      /* ten looks a second at who holds it */
bool prb_rows_usage(struct prb_rows *rows, unsigned what, prb_usage_row_fn *row,
                    struct prb_error *err);

/* A cell of how much a counter went up; NULL: it is not known. */
void prb_row_increase(struct prb_rows *rows, int64_t before, int64_t after);
/* A cell of the kernel's function that a thread waits in; NULL: none, not shown to us, or the
 * column `name` is not wanted. */
void prb_row_wchan(struct prb_rows *rows, const char *name, pid_t tid);

#endif
