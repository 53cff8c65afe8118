/*
 * Which collective of its group a row is that the Flight Recorder does not hold any more: it has the
 * last 2,000 or so, a minute of a job that trains.
 *
 * The observer counts the collectives of an operation in each rank.  Where all of an operation that
 * the recorder still knows are of one group, the counts of two ranks differ by the same number for
 * all of them, and the recorder's numbers of the newest say by which.
 *
 * Gloo of PyTorch 2.9 and before is not in the recorder at all.  In a job of two ranks both have each
 * collective together, so their times say by which number the counts differ.
 */
#ifndef PRB_TABLE_COLLECTIVE_NUMBERS_H
#define PRB_TABLE_COLLECTIVE_NUMBERS_H

#include "table/shared/collectives.h"

/* Give group and a seq below -1, the same in all ranks, to those that have none, where it can be
 * told.  One clock: of a job of two ranks that the recorder knows nothing of, by time; the group is "".
 * False: NOMEM. */
bool prb_job_number(struct prb_job *job, bool one_machine, struct prb_error *err);

#endif
