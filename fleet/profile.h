/* The result of the kind "profile": samples of all ranks, as one profile. */
#ifndef PRB_FLEET_PROFILE_H
#define PRB_FLEET_PROFILE_H

#include "probing.h"

/* Begins as {0}.  Asked again, the ranks' processes go on. */
struct prb_fleet_profile {
    struct prb_profile *profile; /* NULL: no rank has answered; each process has its rank */
    double from;                 /* s since its start at which the next question begins */
};
PRB_API void prb_fleet_profile_deinit(struct prb_fleet_profile *profile);

#endif
