/* Reading collapsed stacks. */
#ifndef PRB_PROFILE_COLLAPSED_H
#define PRB_PROFILE_COLLAPSED_H

#include "profile/profile.h"

/* Errors: NOT_FOUND, CORRUPT (says which line). */
struct prb_profile *prb_profile_read_collapsed(const char *path, struct prb_error *err);

#endif
