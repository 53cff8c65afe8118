/*
 * Profiles that are taken while people look at them: each has a thread that samples.
 *
 * Who reads one holds it: sampling pauses then, so a reading is whole.  Frames, stacks and threads keep
 * their numbers, and only come to be more, so that a reading can go on where another one ended.
 */
#ifndef PRB_SERVE_RUNS_H
#define PRB_SERVE_RUNS_H

#include <jansson.h>

#include "probing.h"

#define PRB_RUNS_MAX 24            /* all of them */
#define PRB_RUNS_KEPT 16           /* of those that were asked for by POST */
#define PRB_RUNS_OF_TARGET 2       /* that run */
#define PRB_RUN_NAME 24            /* bytes of its id */
#define PRB_RUN_NODES_MAX 1000000u /* then it ends */

struct prb_runs;
struct prb_run;

struct prb_runs *prb_runs_new(struct prb_error *err);
/* Ends all. */
void prb_runs_free(struct prb_runs *runs);

struct prb_run_options {
    pid_t pid;
    double seconds, rate;
    enum prb_profile_mode mode;
    bool native;
    bool shared; /* it has no name for others: equal ones are one, which ends with the last user */
};
/* Modes by name, "active wall cpu gil"; false: there is none. */
bool prb_run_mode(const char *name, enum prb_profile_mode *out);
/* BUSY: too many.  Whether the process can be sampled is seen by who holds it. */
bool prb_runs_begin(struct prb_runs *runs, const struct prb_run_options *options,
                    char id[PRB_RUN_NAME], struct prb_error *err);
/* Ends it; a shared one when nobody else uses it.  NOT_FOUND. */
bool prb_runs_end(struct prb_runs *runs, const char *id, struct prb_error *err);

/* For this thread until it is released.  Errors: NOT_FOUND, those of prb_profiler_add. */
struct prb_run *prb_run_hold(struct prb_runs *runs, const char *id, struct prb_error *err);
void prb_run_release(struct prb_run *held);
const struct prb_profile *prb_run_profile(const struct prb_run *held);
/* {"id", "target", "pid", "command", "started", "seconds", "samples", "done", "mode", "rate"} */
json_t *prb_run_facts(const struct prb_run *held);
/* The ids of those asked for by POST, the oldest first. */
size_t prb_runs_list(struct prb_runs *runs, char ids[PRB_RUNS_MAX][PRB_RUN_NAME]);

/* Where a reading ended. */
struct prb_run_place {
    unsigned frames, nodes, threads, stamp;
};
/* What came behind a place, which is moved: "first_frame", "frames", "first_node", "nodes",
 * "first_thread", "threads" and the weights that changed, beside the counts. */
json_t *prb_run_increment(struct prb_run *held, struct prb_run_place *place);

#endif
