/* Running code in a target. */
#ifndef PRB_SERVE_ROUTES_EVALUATE_H
#define PRB_SERVE_ROUTES_EVALUATE_H

#include "serve/http/route.h"

/* Run asked's "code" (and "thread", "frame", "namespace", "timeout", "id") in the process of the
 * path's first part: {"value", "output", "raised", "seconds", "truncated"}, a new reference. */
json_t *prb_serve_evaluate(struct prb_serve_job *job, const json_t *asked, struct prb_error *err);

#endif
