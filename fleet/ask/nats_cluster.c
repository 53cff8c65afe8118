/* Who is on the bus (fleet/cluster.h). */
#include <stdio.h>
#include <string.h>

#include "fleet/ask/nats.h"
#include "fleet/cluster.h"

void prb_cluster_hosts_deinit(struct prb_cluster_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        free(hosts->items[i].members);
    free(hosts->items);
    *hosts = (struct prb_cluster_hosts){0};
}

static void list_one(struct prb_roster_entry *entry, const char *name, struct prb_cluster_host *out)
{
    *out = (struct prb_cluster_host){
        .pid = entry->pid, .members = entry->members.items, .count = entry->members.count};
    snprintf(out->host, sizeof out->host, "%s", name);
    snprintf(out->release, sizeof out->release, "%s", entry->release);
    entry->members = (struct prb_fleet_members){0};
}

static int by_host(const void *a, const void *b)
{
    const struct prb_cluster_host *x = a, *y = b;
    return strcmp(x->host, y->host);
}

bool prb_cluster_own(struct prb_cluster_hosts *out, struct prb_error *err)
{
    PRB_AUTO(prb_roster_entry) struct prb_roster_entry entry = {0};
    *out = (struct prb_cluster_hosts){0};
    if (!prb_roster_own(&entry, err) || !prb_fleet_members_find(false, &entry.members, err))
        return false;
    if (!(out->items = calloc(1, sizeof *out->items)))
        return prb_nomem(err);
    list_one(&entry, entry.host, &out->items[out->count++]);
    return true;
}

bool prb_cluster_hosts(const char *bus, struct prb_cluster_hosts *out, struct prb_error *err)
{
    struct prb_error why = {0};
    struct prb_fleet_transport *transport = prb_fleet_nats_open(bus, &why);
    struct prb_nats *nats = (struct prb_nats *)transport;
    PRB_AUTO(prb_fleet_members) struct prb_fleet_members members = {0};
    *out = (struct prb_cluster_hosts){0};
    if (!transport && why.code == PRB_OK)
        return prb_cluster_own(out, err);
    if (!transport) {
        *err = why;
        return false;
    }
    bool good = prb_nats_find(transport, NULL, &members, err) &&
                ((out->items = calloc(nats->count + 1, sizeof *out->items)) || prb_nomem(err));
    for (size_t i = 0; good && i < nats->count; i++) {
        struct prb_nats_host *host = nats->hosts[i];
        if (!host->entry.host[0])
            continue;
        struct prb_cluster_host *one = &out->items[out->count++];
        list_one(&host->entry, host->name, one);
        one->silent = !host->told;
        one->clock = host->clock;
        one->clock_error = host->clock_error;
    }
    transport->ops->close(transport);
    if (good)
        qsort(out->items, out->count, sizeof *out->items, by_host);
    return good;
}
