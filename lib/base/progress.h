/*
 * How far something is that may take long, for whoever asked: prb_progress_to() of probing.h.
 */
#ifndef PRB_BASE_PROGRESS_H
#define PRB_BASE_PROGRESS_H

#include "probing.h"

extern prb_progress_fn *prb_progress_told; /* NULL: nobody asks */

static inline void prb_progress(const char *what, uint64_t done)
{
    if (prb_progress_told)
        prb_progress_told(what, done);
}

#endif
