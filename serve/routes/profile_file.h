/* Profiles as files. */
#ifndef PRB_SERVE_ROUTES_PROFILE_FILE_H
#define PRB_SERVE_ROUTES_PROFILE_FILE_H

#include "serve/http/route.h"
#include "serve/live/runs.h"

/* The answer is the profile in the job's format; before: a flame graph is coloured by the difference
 * from it, or NULL. */
bool prb_answer_profile(struct prb_serve_job *job, const struct prb_profile *profile,
                        const struct prb_profile *before, struct prb_error *err);
/* The media type of a profile's format. */
const char *prb_profile_media_type(const char *format);

#endif
