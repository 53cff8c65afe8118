/* What the tables of a process say of its last steps, for the view "steps" of top. */
#ifndef PRB_CLI_STEP_ROWS_H
#define PRB_CLI_STEP_ROWS_H

#include "cli/top/steps.h"

#define PRB_STEPS_RECENT 20 /* whose means are shown */

/* Which rows: a condition of SQL, such as "pid = 12".  What it does not find stays as it was. */
struct prb_steps_rows {
    struct prb_db *db;
    const char *where;
};

/* Of which nothing is known yet.  rank: -1: none. */
struct prb_steps_row prb_steps_row_unknown(pid_t pid, int rank);
/* Of a row that begins with: how many steps, their mean length, the number of the last, the means of
 * the time in data, forward, backward, optimizer, communication. */
void prb_steps_put_timed(struct prb_steps_row *out, const struct prb_value *row);
/* The phases, the length and the number of the last steps that were recorded; false: none were. */
bool prb_steps_timed(const struct prb_steps_rows *rows, struct prb_steps_row *out);
/* The loss and the rate of the newest row that the program logged. */
void prb_steps_logged(const struct prb_steps_rows *rows, struct prb_steps_row *out);
/* Its memory at last. */
void prb_steps_memory(const struct prb_steps_rows *rows, struct prb_steps_row *out);

static inline double prb_steps_real(const struct prb_value *value)
{
    return value->type == PRB_REAL      ? value->real
           : value->type == PRB_INTEGER ? (double)value->integer
                                        : (double)NAN;
}

#endif
