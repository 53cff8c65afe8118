/*
 * fleet.h: one question to all ranks of a job, one answer, and what is missing.
 *
 * An address "@JOB[:RANKS]" is opened, and asked any number of times.  Each answer comes with its
 * coverage: every rank asked for is in exactly one state.  A transport carries the questions to the
 * hosts (ask/transport.h); a kind says what a rank, its host and the asker do (message/kind.h).
 * Conventions are those of probing.h.  One handle serves one thread at a time.
 */
#ifndef PRB_FLEET_FLEET_H
#define PRB_FLEET_FLEET_H

#include "fleet/coverage.h"

struct prb_fleet;

struct prb_fleet_options {
    bool local; /* this host alone, whatever bus is configured, as "@local" */
    bool over;  /* also a job whose ranks have all ended, where none runs that is meant */
    const char
        *bus; /* file, folder or URL; NULL: PROBING_BUS, ~/.config/probing/bus, else this host */
    double budget; /* s for one question; 0: as its kind has it */
    /* Asked some times a second while it waits; false ends the question (TIMEOUT).  May be NULL. */
    bool (*go_on)(void *context);
    void *context;
};

/* Whether a word of the command line is an address: it begins with '@'. */
PRB_API bool prb_fleet_is(const char *word);
/* The length of an address without its ":RANKS": a job's name may have colons. */
PRB_API size_t prb_fleet_job_length(const char *word);
/*
 * Open "@" (the only job there is), "@JOB", "@local" (this host, whatever bus is configured), each
 * also with ":RANKS" as "0-7,12".  options may be NULL.  Errors: USAGE (several jobs: listed; ranks
 * beyond the job's), NOT_FOUND (no such job: those that there are).
 */
PRB_API struct prb_fleet *prb_fleet_open(const char *address,
                                         const struct prb_fleet_options *options,
                                         struct prb_error *err) PRB_MUST_CHECK;
PRB_API void prb_fleet_close(struct prb_fleet *fleet);

/* A process that is a rank. */
struct prb_fleet_member {
    int rank, local_rank, world_size; /* -1: not known */
    int attempt;                      /* of its launcher, from 0 */
    pid_t pid;                        /* on its host */
    uid_t uid;
    double started; /* s since the epoch, by its host's clock */
    char job[128];  /* as lib/proc/identities.def names it */
    char host[80];  /* the node's name, unique in the job: node1, node1#2 */
    char role[32];  /* as its launcher names it (ROLE_NAME), or "" */
    /* why it cannot be asked: two processes claim the rank; "": it can */
    char refused[160];
    double ended; /* s since the epoch, when its host saw that it had ended; 0: it runs */
    double ago;   /* s since its host was last heard of, where that does not answer; else 0 */
    char crash_dir[200]; /* PROBING_CRASH_DIR of its environment; known on its host alone */
};

struct prb_fleet_info {
    const char *job;
    int world_size; /* ranks from 0 to world_size - 1 */
    unsigned hosts;
    const char *transport;                  /* "local", "nats" */
    const struct prb_fleet_member *members; /* by rank */
    size_t member_count;
    const struct prb_rank_set *asked; /* of 0 … world_size - 1 */
    const char *note; /* what whoever asks should know: hosts of other releases; or NULL */
};
/* Of the latest look at the job: prb_fleet_open, then each question.  Borrowed until the next. */
PRB_API const struct prb_fleet_info *prb_fleet_info(const struct prb_fleet *fleet);

/*
 * Ask all ranks of the address.  kind: the name of a kind (fleet/message/kind.h); args: a JSON object as text, or NULL;
 * result: what the kind fills (its header says which type).  False only when nobody could be asked;
 * ranks that do not answer are in *coverage_out (prb_coverage_deinit).  Errors: USAGE,
 * UNSUPPORTED (no such kind), TIMEOUT (go_on said so), NOMEM.
 */
PRB_API bool prb_fleet_ask(struct prb_fleet *fleet, const char *kind, const char *args,
                           void *result, struct prb_coverage *coverage_out,
                           struct prb_error *err) PRB_MUST_CHECK;
/* The same of those of its ranks that are in a set, and no others: the coverage is theirs. */
PRB_API bool prb_fleet_ask_ranks(struct prb_fleet *fleet, const struct prb_rank_set *ranks,
                                 const char *kind, const char *args, void *result,
                                 struct prb_coverage *coverage_out,
                                 struct prb_error *err) PRB_MUST_CHECK;

/* The same, with so many s for it where none were given to prb_fleet_open; 0: as its kind has it. */
PRB_API bool prb_fleet_ask_within(struct prb_fleet *fleet, const struct prb_rank_set *ranks,
                                  const char *kind, const char *args, double budget, void *result,
                                  struct prb_coverage *coverage_out,
                                  struct prb_error *err) PRB_MUST_CHECK;

/* ---- debugging a rank on another host ---- */

struct prb_fleet_debugged {
    int rank;
    pid_t pid; /* on its host */
    const char *host;
    const char *address; /* with the real port; "": standard input and output */
    const char *folder;  /* where the process works, on its host; "": not known */
};
struct prb_fleet_debug_options {
    /* of loopback, or the path of a Unix socket: clients of this user; NULL: in and out */
    const char *address;
    int in, out;
    bool any_user;       /* on loopback, any user of this machine: for port forwarders */
    bool pause;          /* stop the rank until a client lets it run */
    bool look;           /* the rank is only read, without the probe */
    double resume_after; /* s until it runs again if no client came; 0: never */
    int stop_fd;         /* readable: end; -1: none */
    /* Its agent serves it, and clients may connect.  Both may be NULL. */
    void (*ready)(void *context, const struct prb_fleet_debugged *what);
    /* One line for people about what happens. */
    void (*note)(void *context, const char *text);
    void *context;
};
/*
 * Carry the Debug Adapter Protocol between clients here and the one rank of the address, over the
 * bus, until stop_fd is readable or the rank ends; it then runs as before.  Errors: USAGE (several
 * ranks, an address that is not loopback), UNSUPPORTED (no bus: it is a process of this host),
 * PARTIAL (its agent refuses, or is silent), GONE (the agent or the bus was lost).
 */
PRB_API bool prb_fleet_debug(struct prb_fleet *fleet, const struct prb_fleet_debug_options *options,
                             struct prb_error *err);

#endif
