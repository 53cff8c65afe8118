/* Skills on a target of the server, which knows since when its threads stand. */
#ifndef PRB_SERVE_DIAGNOSE_H
#define PRB_SERVE_DIAGNOSE_H

#include "serve/http/route.h"

/* spec: what prb_serve_target_name gave.  name: of a skill, or "diagnose" for all of ours.  seconds: how long
 * to look, 0: as the skill says.  goes_on(context) is asked; the text is JSON, which the caller frees. */
struct prb_serve_diagnosis {
    const struct prb_serve *serve;
    const char *spec, *name;
    double seconds;
    bool (*goes_on)(void *context);
    void *context;
};
char *prb_serve_diagnose(const struct prb_serve_diagnosis *wanted, struct prb_error *err);

#endif
