/* A profile of the next second, for the routes of flame graphs. */
#ifndef PRB_SERVE_UPSTREAM_FLAMES_H
#define PRB_SERVE_UPSTREAM_FLAMES_H

#include "serve/upstream/upstream.h"

/* The body becomes what `profile --format` writes, of ?seconds= (1) of the process. */
bool prb_upstream_profile(struct prb_serve_job *job, const char *format, struct prb_error *err);
/* The lines "a;b;c 12" of the body; the body is empty then. */
json_t *prb_upstream_folded(struct prb_serve_job *job, struct prb_error *err);

#endif
