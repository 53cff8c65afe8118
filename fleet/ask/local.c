/* The transport of one host: its ranks are asked by this process. */
#include <string.h>

#include "base/error.h"
#include "fleet/ask/transport.h"

struct local {
    struct prb_fleet_transport base; /* first */
    struct prb_fleet_host *host;
};

static bool find(struct prb_fleet_transport *transport, const char *job,
                 struct prb_fleet_members *out, struct prb_error *err)
{
    struct local *local = (struct local *)transport;
    const struct prb_fleet_members *all = prb_fleet_host_look(local->host, err);
    if (!all)
        return false;
    out->count = 0;
    out->stale = all->stale;
    for (size_t i = 0; i < all->count; i++) {
        if (job && strcmp(all->items[i].job, job) != 0)
            continue;
        if (!PRB_GROW(out->items, out->count, out->cap))
            return prb_nomem(err);
        out->items[out->count++] = all->items[i];
    }
    return true;
}

static bool ask(struct prb_fleet_transport *transport, const struct prb_fleet_request *request,
                const struct prb_fleet_members *members, prb_fleet_got_fn *got, void *context,
                struct prb_error *err)
{
    struct local *local = (struct local *)transport;
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    PRB_AUTO(prb_fleet_reply) struct prb_fleet_reply reply = {0};
    (void)members;
    if (!prb_fleet_host_answer(local->host, request, transport->go_on, transport->context, &bytes,
                               err) ||
        !prb_fleet_reply_parse(bytes.data, bytes.len, request->id, &reply, err))
        return false;
    got(context, &reply, bytes.len);
    return true;
}

static void local_close(struct prb_fleet_transport *transport)
{
    struct local *local = (struct local *)transport;
    prb_fleet_host_free(local->host);
    free(local);
}

static const struct prb_fleet_transport_ops ops = {"local", find, ask, local_close};

struct prb_fleet_transport *prb_fleet_local_open(struct prb_error *err)
{
    struct local *local = calloc(1, sizeof *local);
    if (!local)
        return PRB_NULL(prb_nomem(err));
    local->base.ops = &ops;
    local->host = prb_fleet_host_new(NULL, false, err);
    if (local->host)
        return &local->base;
    free(local);
    return NULL;
}
