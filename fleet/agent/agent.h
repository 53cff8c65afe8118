/* The parts of a host's agent. */
#ifndef PRB_FLEET_AGENT_H
#define PRB_FLEET_AGENT_H

#include "fleet/bus/go.h"
#include "fleet/cluster.h"
#include "format/log_file.h"

/* ---- attach.c: one agent for a user, a host and a pid namespace ---- */

/* *lock_out: the file whose lock the agent has.  False: another process has it, *pid_out; 0: which is not known; or
 * err. */
bool prb_agent_lock_take(int *lock_out, int *pid_out, struct prb_error *err);
/* Its end, before it is closed: the file is removed. */
void prb_agent_lock_remove(int lock);
/* Who has it, for those that find it taken; within: as a thread of another program. */
bool prb_agent_lock_tell(int lock, bool within);

/* ---- log.c: what was asked to act, and what was refused ---- */

/* $XDG_STATE_HOME/probing/agent-HOST.log. */
struct prb_log_file *prb_agent_log_open(const char *host, struct prb_error *err) PRB_MUST_CHECK;

/* ---- lane.c, work.c: requests wait, and are answered one after the other ---- */

struct prb_agent_work_options {
    struct prb_log_file *log;
    const char *key, *host;           /* of the agent in the roster; the node's name */
    bool allowed[PRB_FLEET_EVAL + 1]; /* by class of request */
    const unsigned char *trusted[PRB_FLEET_EVAL + 1]; /* public keys, or NULL */
    bool all_users;
    const char *program; /* as of prb_cluster_agent_options */
};
struct prb_agent_work;
/* With threads for looks, and one for each other class that is allowed. */
struct prb_agent_work *prb_agent_work_new(const struct prb_agent_work_options *options,
                                          struct prb_error *err) PRB_MUST_CHECK;
/* Ends the threads and the children. */
void prb_agent_work_free(struct prb_agent_work *work);
/* The connection that answers go to; NULL: none now.  Waits until none is on its way. */
void prb_agent_work_use(struct prb_agent_work *work, struct prb_bus *bus);
/* Ranks came or went: the next request looks for them, and knows of those that ended. */
void prb_agent_work_ranks(struct prb_agent_work *work, const struct prb_fleet_members *members);
/* A message of a class; for prb_bus_subscribe. */
prb_bus_fn prb_agent_work_look, prb_agent_work_control, prb_agent_work_eval, prb_agent_work_cancel;

/* ---- crashes.c: dumps of this host's ranks, told as they come ---- */

struct prb_agent_crashes;
struct prb_agent_crashes_options {
    struct prb_log_file *log;
    const char *host, *key;
    bool all_users;
};
/* With a thread of its own.  options stay. */
struct prb_agent_crashes *prb_agent_crashes_new(const struct prb_agent_crashes_options *options,
                                                struct prb_error *err) PRB_MUST_CHECK;
void prb_agent_crashes_free(struct prb_agent_crashes *crashes);
/* The connection; NULL: none now.  Waits until none is on its way.  crashes NULL: nothing. */
void prb_agent_crashes_use(struct prb_agent_crashes *crashes, struct prb_bus *bus);
/* Ranks came or went. */
void prb_agent_crashes_ranks(struct prb_agent_crashes *crashes,
                             const struct prb_fleet_members *ranks);

/* ---- metrics.c: what is measured of this host's ranks, in a file for node_exporter ---- */

struct prb_agent_metrics;
struct prb_agent_metrics_options {
    struct prb_log_file *log;
    const char *file; /* its name ends in .prom */
    const char *host;
    bool all_users;
    double every; /* s between two files */
};
/* With a thread of its own; a file is there from then on, each a whole one in the place of the one before.  options
 * stay.  Errors: USAGE (the name), IO, PERMISSION. */
struct prb_agent_metrics *prb_agent_metrics_new(const struct prb_agent_metrics_options *options,
                                                struct prb_error *err) PRB_MUST_CHECK;
/* Removes the file.  NULL: nothing. */
void prb_agent_metrics_free(struct prb_agent_metrics *metrics);
/* Ranks came or went: the next file has these.  metrics NULL: nothing. */
void prb_agent_metrics_ranks(struct prb_agent_metrics *metrics);

#endif
