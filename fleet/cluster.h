/*
 * cluster.h: the bus at which the hosts of a job meet, as `probing cluster` starts and ends it, and
 * a host's agent on it.  Conventions are those of probing.h.
 */
#ifndef PRB_FLEET_CLUSTER_H
#define PRB_FLEET_CLUSTER_H

#include "fleet/fleet.h"

struct prb_cluster_up_options {
    const char *listen; /* "HOST:PORT", "HOST", ":PORT" (port 0: any); NULL: all addresses, 4222 */
    const char *store;  /* most bytes that the server keeps on disk, as "1G"; NULL: that */
};

struct prb_cluster_bus {
    char folder[4096]; /* of the bus files and the server's own */
    char host[80];     /* where the server runs */
    int port;
    int pid;      /* of the process that keeps the server running; 0: not of this host */
    bool already; /* it ran before */
};

/*
 * Write keys, certificate and configuration where they are missing, start nats-server with a
 * process that starts it again when it ends, and wait until it listens.  Errors: UNSUPPORTED (no
 * nats-server, no libcrypto), USAGE, BUSY (another server has the port), IO.
 */
PRB_API bool prb_cluster_up(const struct prb_cluster_up_options *options,
                            struct prb_cluster_bus *out, struct prb_error *err);
/* Only the files; the text is the server's configuration, which the caller frees. */
PRB_API char *prb_cluster_configuration(const struct prb_cluster_up_options *options,
                                        struct prb_error *err) PRB_MUST_CHECK;
/* End the server and what keeps it running; *was_running false: there was none.  Errors:
 * UNSUPPORTED (it runs on another host), TIMEOUT. */
PRB_API bool prb_cluster_down(struct prb_cluster_bus *out, bool *was_running,
                              struct prb_error *err);

/* ---- the agent ---- */

struct prb_cluster_agent_options {
    const char *bus; /* file, folder or URL; NULL: PROBING_BUS, ~/.config/probing/bus */
    bool allow_control, allow_eval;
    bool all_users;    /* also ranks of other users */
    bool insecure;     /* also a bus without TLS on another host */
    bool no_collector; /* another thread of this process is it */
    /* Tables whose new rows are published to the bus, separated by commas, "*": all; NULL: none. */
    const char *history;
    double history_every; /* s between two rounds; 0: 10 */
    /* FILE.prom, which has what is measured of this host's ranks while it runs; NULL: PROBING_CLUSTER_METRICS, else
     * none. */
    const char *metrics;
    double linger; /* s after the last rank until it ends; 0: 10 minutes */
    int beside; /* a process: once it has ended, and no rank runs here, so does the agent; 0: none */
    int stop_fd;         /* readable: end; -1: none */
    const char *program; /* of the command line, which serves debuggers; NULL: this one */
    /* This process has threads: a program and its words, to which the number of a descriptor is added, that calls
     * prb_fleet_starter_live.  NULL: it has none. */
    const char *const *starter;
    /* It is connected, and answers. */
    void (*ready)(void *context);
    /* Why it ends by itself, one line.  Both may be NULL. */
    void (*say)(void *context, const char *line);
    void *context;
};
/* Be this host's agent until something ends it.  Errors: those of the bus, at first. */
PRB_API bool prb_cluster_agent(const struct prb_cluster_agent_options *options,
                               struct prb_error *err);

struct prb_cluster_attached {
    int pid;      /* of the agent */
    bool already; /* it ran before */
};
/*
 * Start this host's agent in the background, and return when it is connected; one that runs stays
 * as it is, and is told of.  stop_fd, ready and say are not used.
 */
PRB_API bool prb_cluster_attach(const struct prb_cluster_agent_options *options,
                                struct prb_cluster_attached *out, struct prb_error *err);
struct prb_cluster_within;
/*
 * Be it on a thread of this program, which is the host's collector, too, and return when it is
 * connected; called before there are other threads, or with a starter.  *out NULL: another process is this host's
 * agent, and stays it.  no_collector, stop_fd and ready are not used; what the options name stays
 * until the end.
 */
bool prb_cluster_within_begin(const struct prb_cluster_agent_options *options,
                              struct prb_cluster_within **out,
                              struct prb_cluster_attached *attached, struct prb_error *err);
/* It has ended by itself, and prb_cluster_within_end is all that is left. */
bool prb_cluster_within_is_over(struct prb_cluster_within *within);
/* NULL: nothing. */
void prb_cluster_within_end(struct prb_cluster_within *within);

struct prb_cluster_hosts_options {
    const char *bus;          /* whose file for agents each host gets */
    const char *file;         /* names of hosts, one a line, as ssh takes them */
    const char *const *words; /* more words for `probing cluster attach` there */
    size_t word_count;
    /* Of each host when it is done: what was said there. */
    void (*told)(void *context, const char *host, bool good, const char *text);
    void *context;
};
/* Run `probing cluster attach` on many hosts by ssh, some at a time.  Errors: USAGE (the file),
 * NOT_FOUND (no bus file, no ssh), PARTIAL (some have no agent). */
PRB_API bool prb_cluster_attach_hosts(const struct prb_cluster_hosts_options *options,
                                      struct prb_error *err);
/* End it.  *was_running false: there was none.  Errors: TIMEOUT, BUSY (it is a thread of a program
 * that does something else, too). */
PRB_API bool prb_cluster_detach(bool *was_running, struct prb_error *err);

/* ---- who is on the bus ---- */

struct prb_cluster_host {
    char host[80]; /* the node's name, made unique */
    char release[32];
    int pid;                   /* of the agent */
    bool silent;               /* the roster knows it, and it does not answer */
    double clock, clock_error; /* s: its clock less ours, and how much that may be wrong */
    struct prb_fleet_member *members;
    size_t count;
};
struct prb_cluster_hosts {
    struct prb_cluster_host *items;
    size_t count;
};
/* Of the bus that is named or configured, else this host alone. */
PRB_API bool prb_cluster_hosts(const char *bus, struct prb_cluster_hosts *out,
                               struct prb_error *err);
/* The same of the bus of a job that is open. */
PRB_API bool prb_fleet_hosts(const struct prb_fleet *fleet, struct prb_cluster_hosts *out,
                             struct prb_error *err);
/* This host, which need not be on a bus. */
PRB_API bool prb_cluster_own(struct prb_cluster_hosts *out, struct prb_error *err);
PRB_API void prb_cluster_hosts_deinit(struct prb_cluster_hosts *hosts);

/* ---- what agents published ---- */

struct prb_cluster_record_options {
    const char *bus;
    /* A file of the store, or "postgresql://…" as libpq takes it; made where it is not there, else
     * continued. */
    const char *file;
    bool once;   /* end with what there is */
    int stop_fd; /* readable: end; -1: none */
    /* What was left out, and that the database is away, one line each; may be NULL. */
    void (*say)(void *context, const char *line);
    void *context;
};
struct prb_cluster_recorded {
    uint64_t rows;  /* taken in this run */
    char name[200]; /* of the file or database; without a password */
};
/* Take the history of all hosts into a file or a database.  Errors: NOT_FOUND (no bus, or no agent
 * publishes), TIMEOUT, IO, UNSUPPORTED (no libpq), PERMISSION. */
PRB_API bool prb_cluster_record(const struct prb_cluster_record_options *options,
                                struct prb_cluster_recorded *out, struct prb_error *err);

#endif
