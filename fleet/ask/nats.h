/*
 * The transport of many hosts, by parts: nats_hosts.c knows hosts, nats_find.c finds them, nats_ask.c asks
 * them, nats.c opens the connection.
 *
 * A host that the server has lost costs no time: whoever does not answer is asked again on the
 * subject that only its agent hears, and the server says at once that nobody does.  Until the server
 * knows, its agent gives no sign of life, as any other does to that question at once, however long
 * its answer takes: it is not waited for.
 */
#ifndef PRB_FLEET_NATS_H
#define PRB_FLEET_NATS_H

#include "fleet/ask/transport.h"
#include "fleet/bus/go.h"
#include "fleet/bus/roster.h"

#define PRB_NATS_SLICE 0.05 /* s: between two looks at what else may have happened */
#define PRB_NATS_DOUBT_AGAIN                                                                       \
    0.5 /* s, until who does not answer is asked again whether it is there */
/* s without a sign of life, after which a host is not waited for: since hosts were asked to tell of themselves, so
 * that it costs a command 0.5 in all; the same, where it gave none at the last question either; where it gave one to
 * this question, and gives no more. */
#define PRB_NATS_QUIET 0.4
#define PRB_NATS_QUIET_AGAIN 0.1
#define PRB_NATS_QUIET_LATER 3.0

/* Which message an answer answers: its kind, and the number of a host. */
enum {
    PRB_NATS_ALL = 0x00000000,
    PRB_NATS_ROSTER = 0x10000000,
    PRB_NATS_ENTRY = 0x20000000,
    PRB_NATS_HOST = 0x30000000,
    PRB_NATS_DOUBT = 0x40000000,
};
#define PRB_NATS_KIND 0xf0000000u

struct prb_nats_host {
    unsigned number; /* in hosts */
    char key[PRB_ROSTER_KEY];
    char name[80];             /* unique among hosts */
    char job[PRB_BUS_TOKEN];   /* one of its jobs, as a part of subjects; "": none */
    bool told, listed, absent; /* of itself; in the roster; the server has lost it */
    bool quiet;                /* it gave no sign of life, and is not waited for */
    bool was_quiet;            /* the same of the last question */
    struct prb_roster_entry entry;
    double clock, clock_error; /* s: its clock less ours */
    double ago; /* s: so old was its entry in the roster, where it does not tell of itself */
    /* of the question that runs: */
    bool asked, done;
    double began, doubt; /* s, monotonic: since when; when it is asked whether it is there */
    double heard;        /* s, monotonic: its last sign of life but that it told; 0: none */
    struct prb_bus_parts parts;
    char nonce[PRB_GO_NONCE];
};

struct prb_nats {
    struct prb_fleet_transport base; /* first */
    char *named;                     /* the bus, or NULL */
    struct prb_bus_file file;
    struct prb_bus *bus;
    enum prb_bus_class class;               /* of file and bus */
    struct prb_nats_host **hosts, **sorted; /* by number, by key */
    size_t count, cap, sorted_cap;
    char (*quiet)[PRB_ROSTER_KEY]; /* hosts that gave no sign of life at the last question */
    size_t quiet_count, quiet_cap;
};

/* ---- nats_hosts.c ---- */

/* NULL: none has the key, which may be NULL. */
struct prb_nats_host *prb_nats_host_of(const struct prb_nats *nats, const char *key);
/* NULL: out of memory. */
struct prb_nats_host *prb_nats_add_host(struct prb_nats *nats, const char *key);
/* But for who was quiet. */
void prb_nats_forget_hosts(struct prb_nats *nats);
/* node1, node1#2: two agents whose node has one name. */
bool prb_nats_name_hosts(struct prb_nats *nats, struct prb_error *err);
/* False with TIMEOUT: whoever asks has had enough. */
bool prb_nats_goes_on(const struct prb_fleet_transport *base, struct prb_error *err);
/* tag: of the answers. */
bool prb_nats_publish(struct prb_nats *nats, struct prb_bus_inbox *inbox, unsigned tag,
                      const char *subject, const char *text, struct prb_error *err);
/* Nobody hears what only this host's agent hears?  The answer's tag is PRB_NATS_DOUBT. */
bool prb_nats_doubt(struct prb_nats *nats, struct prb_bus_inbox *inbox, struct prb_nats_host *host,
                    struct prb_error *err);

/* ---- the operations of transport.h ---- */

bool prb_nats_find(struct prb_fleet_transport *transport, const char *job,
                   struct prb_fleet_members *out, struct prb_error *err);
bool prb_nats_ask(struct prb_fleet_transport *transport, const struct prb_fleet_request *request,
                  const struct prb_fleet_members *members, prb_fleet_got_fn *got, void *context,
                  struct prb_error *err);

/* nats.c: the connection of a class; where the bus is a folder, each has a file of its own. */
bool prb_nats_connect(struct prb_nats *nats, enum prb_bus_class class, struct prb_error *err);

#endif
