/*
 * Who is on the bus: what a host says of itself, in its answer to `find` and in the roster, a
 * key-value bucket of the server with one entry for each host, which outlives it.
 *
 * An entry is one JSON object: v, host, key, release, boot, uid, started, clock, collector, and
 * "members": [{job, rank, local_rank, world_size, attempt, pid, uid, started, ended, refused}].
 */
#ifndef PRB_FLEET_ROSTER_H
#define PRB_FLEET_ROSTER_H

#include "fleet/bus/bus.h"
#include "fleet/host/host.h"

#define PRB_ROSTER_KEY 120      /* bytes of a host's key, with the NUL */
#define PRB_ROSTER_MEMBERS 4096 /* of one host at the most */
#define PRB_ROSTER_STREAM "KV_probing_roster"
#define PRB_ROSTER_SUBJECT "$KV.probing_roster."

struct prb_roster_entry {
    /* of the host's agent, the part of a subject that reaches it alone: its name, user, boot and
     * namespaces */
    char key[PRB_ROSTER_KEY];
    char host[80]; /* the node's name */
    char release[32];
    unsigned uid;
    int pid;
    double started, clock; /* s since the epoch, by the host */
    struct prb_fleet_members members;
};
void prb_roster_entry_deinit(struct prb_roster_entry *entry);
PRB_DEFINE_AUTO(prb_roster_entry, struct prb_roster_entry, prb_roster_entry_deinit)

/* Of this host and process, without members. */
bool prb_roster_own(struct prb_roster_entry *out, struct prb_error *err);
/* The text is the caller's. */
char *prb_roster_pack(const struct prb_roster_entry *entry, struct prb_error *err);
/* Errors: CORRUPT. */
bool prb_roster_parse(const char *text, size_t len, struct prb_roster_entry *out,
                      struct prb_error *err);

/* ---- the bucket ---- */

/* Make the bucket where there is none, and put the entry.  False: this server keeps none
 * (UNSUPPORTED), or does not answer. */
bool prb_roster_begin(struct prb_bus *bus, struct prb_error *err);
/* text NULL: the host has left. */
bool prb_roster_put(struct prb_bus *bus, const char *key, const char *text, struct prb_error *err);

/*
 * Reading, by messages in the asker's own inbox: ask for the list of hosts; then for some hosts'
 * entries.  tag: of the answer.
 */
bool prb_roster_ask_hosts(struct prb_bus *bus, struct prb_bus_inbox *inbox, unsigned tag,
                          struct prb_error *err);
/* Calls add for each key of the answer; false: it is none (there is no roster).  *time_out: the
 * server's time of the answer, or of the latest entry, s since the epoch; 0: it does not say. */
bool prb_roster_hosts(const struct prb_bus_message *message,
                      bool (*add)(void *context, const char *key), void *context, double *time_out);
/* When the server took an entry, s since the epoch by its clock; 0: it does not say. */
double prb_roster_taken(const struct prb_bus_message *message);
bool prb_roster_ask_entry(struct prb_bus *bus, struct prb_bus_inbox *inbox, unsigned tag,
                          const char *key, struct prb_error *err);

#endif
