/*
 * Two lists of the same events: one numbers them, the other has what each of them was.  Which place
 * of the second list a number has, where both are in order, and the two moments of an event lie some
 * way apart (a busy machine may pause a thread between them for longer than two events do).
 */
#ifndef PRB_TABLE_ALIGNMENT_H
#define PRB_TABLE_ALIGNMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prb_numbered {
    int64_t number; /* 0, 1, … without holes */
    double time;    /* s */
};

/*
 * *shift_out + number is the place in times.  Both lists are sorted by time, and may begin and end
 * where the other does not.  False: they have nothing in
 * common, or nothing fits.
 */
bool prb_align(const struct prb_numbered *events, size_t count, const double *times,
               size_t times_count, int64_t *shift_out);

#endif
