/* The transport of many hosts, agents on a bus: its connection.  See nats.h. */
#include <string.h>

#include "fleet/ask/nats.h"

bool prb_nats_connect(struct prb_nats *nats, enum prb_bus_class class, struct prb_error *err)
{
    PRB_AUTO(prb_bus_file) struct prb_bus_file file = {0};
    bool found;
    if (nats->bus && nats->class == class)
        return true;
    if (!prb_bus_file_find(nats->named, class, &file, &found, err))
        return false;
    if (!found)
        return prb_fail(err, PRB_NOT_FOUND, "no bus is configured");
    if (nats->bus && file.path && nats->file.path && strcmp(file.path, nats->file.path) == 0)
        return true; /* one file, which may what it may */
    const struct prb_bus_options options = {.name = "probing"};
    struct prb_bus *bus = prb_bus_open(&file, &options, err);
    if (!bus)
        return false;
    prb_bus_close(nats->bus);
    prb_bus_file_deinit(&nats->file);
    nats->bus = bus;
    nats->file = file;
    nats->class = class;
    file = (struct prb_bus_file){0};
    return true;
}

static void nats_close(struct prb_fleet_transport *transport)
{
    struct prb_nats *nats = (struct prb_nats *)transport;
    prb_nats_forget_hosts(nats);
    prb_bus_close(nats->bus);
    prb_bus_file_deinit(&nats->file);
    free(nats->named);
    free(nats->hosts);
    free(nats->sorted);
    free(nats->quiet);
    free(nats);
}

static struct prb_fleet_line nats_line(struct prb_fleet_transport *transport)
{
    struct prb_nats *nats = (struct prb_nats *)transport;
    return (struct prb_fleet_line){nats->bus, nats->file.has_key ? &nats->file.key : NULL};
}

static const struct prb_fleet_transport_ops ops = {"nats", prb_nats_find, prb_nats_ask, nats_close,
                                                   nats_line};

struct prb_fleet_transport *prb_fleet_nats_open(const char *bus, struct prb_error *err)
{
    PRB_AUTO(prb_bus_file) struct prb_bus_file file = {0};
    bool found;
    if (!prb_bus_file_find(bus, PRB_BUS_look, &file, &found, err) || !found)
        return NULL;
    struct prb_nats *nats = calloc(1, sizeof *nats);
    if (!nats)
        return PRB_NULL(prb_nomem(err));
    nats->base.ops = &ops;
    if (bus && !(nats->named = strdup(bus)))
        prb_nomem(err);
    else if (prb_nats_connect(nats, PRB_BUS_look, err))
        return &nats->base;
    nats_close(&nats->base);
    return NULL;
}
