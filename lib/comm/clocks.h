/*
 * How far the clocks of a job's ranks differ, from its own collectives: no message is sent.
 *
 * In a collective that waits for all, nobody ends before the last one has begun.  So for ranks i and j, on their own
 * clocks, begin_j - end_i <= offset_j - offset_i <= end_j - begin_i.  Every collective gives such bounds; together, and
 * along other ranks, they are an interval that the truth always lies in.
 */
#ifndef PRB_COMM_CLOCKS_H
#define PRB_COMM_CLOCKS_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

#define PRB_CLOCK_RANKS_MAX 256
#define PRB_CLOCK_DRIFT 50e-6 /* s a second: what two clocks may drift apart at most */

struct prb_clocks;

/* One rank's part in a collective, s on its own clock; end NAN: not known. */
struct prb_clock_part {
    size_t rank; /* its index, below the count of ranks */
    double begin, end;
};

/* Of so many ranks, at a moment (s, on the clock of one that takes part in all): a bound from another moment is wider by the drift until then.  NULL: no memory,
 * or too many ranks (USAGE). */
struct prb_clocks *prb_clocks_new(size_t ranks, double moment, struct prb_error *err);
void prb_clocks_free(struct prb_clocks *clocks);
PRB_DEFINE_AUTO_PTR(prb_clocks, struct prb_clocks, prb_clocks_free)

/* The bounds that a collective gives which waits for all of its ranks. */
void prb_clocks_add(struct prb_clocks *clocks, const struct prb_clock_part *parts, size_t count);
/*
 * Intersect all bounds.  one_clock: the ranks are on one machine, so two of them have the same clock to this error (s)
 * unless the collectives say otherwise; 0: nothing is known of that.  False: the collectives contradict each other,
 * and nothing is known.
 */
bool prb_clocks_solve(struct prb_clocks *clocks, double one_clock);
/* What the clock of rank `of` shows beyond that of rank `from`, s: the middle, and half of the interval's width.
 * False: not known. */
bool prb_clocks_offset(const struct prb_clocks *clocks, size_t of, size_t from, double *offset_out,
                       double *error_out);

#endif
