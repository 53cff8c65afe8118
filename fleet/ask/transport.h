/*
 * A transport carries requests to the hosts and their replies back.
 *
 * local.c: this host's ranks, asked in this process.
 */
#ifndef PRB_FLEET_TRANSPORT_H
#define PRB_FLEET_TRANSPORT_H

#include "fleet/host/host.h"

struct prb_fleet_transport;

struct prb_bus;
struct prb_nkey;
/* Borrowed until the next question. */
struct prb_fleet_line {
    struct prb_bus *bus; /* NULL: none */
    const struct prb_nkey *key;
};

/* One reply, parsed; borrowed for the call.  len: its bytes. */
typedef bool prb_fleet_got_fn(void *context, const struct prb_fleet_reply *reply, size_t len);

struct prb_fleet_transport_ops {
    const char *name;
    /* All ranks of all jobs (job NULL), or of one, that are known now: from the hosts themselves,
     * and what is remembered of hosts that do not answer. */
    bool (*find)(struct prb_fleet_transport *transport, const char *job,
                 struct prb_fleet_members *out, struct prb_error *err);
    /* Send the request to all hosts that may have ranks of it, and give each reply as it comes,
     * until all hosts of members have answered, the budget and 200 ms are over, or got or go_on
     * says false. */
    bool (*ask)(struct prb_fleet_transport *transport, const struct prb_fleet_request *request,
                const struct prb_fleet_members *members, prb_fleet_got_fn *got, void *context,
                struct prb_error *err);
    void (*close)(struct prb_fleet_transport *transport);
    /* The connection of the last question, and the key that signs on it; NULL: there is no bus. */
    struct prb_fleet_line (*line)(struct prb_fleet_transport *transport);
};

/* First member of each. */
struct prb_fleet_transport {
    const struct prb_fleet_transport_ops *ops;
    bool (*go_on)(void *context); /* or NULL */
    void *context;
    const char *job; /* that is asked for, or NULL: it is not named */
    double
        patience; /* s that whoever asks wants to wait for hosts to tell of their ranks; 0: it says nothing */
    char note[200]; /* of the last find; "": none */
    /* Of the last find: hosts that are there, and did not tell of their ranks; all: nobody did, and how many there are
     * is not known. */
    size_t unheard;
    bool unheard_all;
    double waited; /* s */
};

/* root.c: of the transport of a job. */
struct prb_fleet_line prb_fleet_line(struct prb_fleet *fleet);

struct prb_fleet_transport *prb_fleet_local_open(struct prb_error *err) PRB_MUST_CHECK;
/* bus: as the user named it, or NULL.  NULL with err OK: no bus is configured. */
struct prb_fleet_transport *prb_fleet_nats_open(const char *bus,
                                                struct prb_error *err) PRB_MUST_CHECK;

#endif
