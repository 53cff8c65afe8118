/* This host's agent on the bus as a part of the server: from its start on (--agent), or once `cluster attach` asks for it. */
#ifndef PRB_SERVE_AGENT_H
#define PRB_SERVE_AGENT_H

#include <jansson.h>

#include "fleet/cluster.h"
#include "serve/serve.h"

struct prb_serve_agent;
/* serve stays. */
struct prb_serve_agent *prb_serve_agent_new(const struct prb_serve *serve, struct prb_error *err);
/* Ends it.  NULL: nothing. */
void prb_serve_agent_free(struct prb_serve_agent *agent);
/* At the start, before there are threads: what the server's TCP may, who acts over the bus may. */
bool prb_serve_agent_begin(struct prb_serve_agent *agent, struct prb_cluster_attached *out,
                           struct prb_error *err);
/*
 * Later.  wanted: an object of texts: bus, allow, all_users, insecure, history, every, metrics, linger, beside, as struct
 * prb_cluster_agent_options has them.  One that runs stays as it is.  Errors: USAGE, those of the bus.
 */
bool prb_serve_agent_attach(struct prb_serve_agent *agent, const json_t *wanted,
                            struct prb_cluster_attached *out, struct prb_error *err);
/* False: it was not the agent. */
bool prb_serve_agent_end(struct prb_serve_agent *agent);

#endif
