/*
 * Profiles as bytes, and one profile added to another: how the ranks of a job become one.
 *
 * The bytes are "PRF" and a version; the texts; then functions, frames, stacks, processes, threads
 * and weights, each as a count and its items; then what the profile says of itself.  Numbers are of 7
 * bits a byte, least first; those that may be negative are folded; a text is its number and 1, 0:
 * none; reals are of 8 bytes, little-endian.  No timeline.  Whatever comes is hostile: each length
 * and index is checked.
 */
#ifndef PRB_PROFILE_PACKED_H
#define PRB_PROFILE_PACKED_H

#include "profile/profile.h"

/* all_threads: also those that have no weight. */
bool prb_profile_pack(const struct prb_profile *profile, bool all_threads, struct prb_buf *out,
                      struct prb_error *err);
/* Errors: CORRUPT, NOMEM. */
struct prb_profile *prb_profile_unpack(const void *data, size_t len,
                                       struct prb_error *err) PRB_MUST_CHECK;

/*
 * Add what another profile has.  A process of the same rank and pid goes on, and so do its threads;
 * from: s since the start of box at which the other one began.  Counts are added up; the rate and the
 * mode are those of the first.
 */
bool prb_profile_add(struct prb_profile_box *box, const struct prb_profile *other, double from,
                     struct prb_error *err);

#endif
