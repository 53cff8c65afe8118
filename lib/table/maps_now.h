/* The maps of this moment, apart from those that decoding holds on to. */
#ifndef PRB_TABLE_MAPS_NOW_H
#define PRB_TABLE_MAPS_NOW_H

#include "proc/proc.h"

bool prb_maps_now(struct prb_proc *proc, struct prb_maps *out, struct prb_error *err);

#endif
