/* Who waits for whom, by the collectives that the ranks' recorders have: sequence numbers of each process group. */
#ifndef PRB_FLEET_WAVEFRONT_H
#define PRB_FLEET_WAVEFRONT_H

#include "fleet/hang.h"

/* The collective that a rank has begun and not ended, of several the oldest; NULL: none is known. */
const struct prb_hang_group *prb_wavefront_open(const struct prb_hang_rank *rank);
/*
 * An edge goes from each rank with an open collective to the members of its group that have not
 * begun that one; members are the ranks whose recorder names the group.  The roots are those that
 * are waited for and wait for nobody.  False: out of memory.
 */
bool prb_wavefront_roots(const struct prb_hang *hang, struct prb_rank_set *roots);
/* Ranks whose open collective has the number of others' in the group, and another operation or
 * other sizes: the fewer.  False: out of memory. */
bool prb_wavefront_mismatch(const struct prb_hang *hang, struct prb_rank_set *odd);

#endif
