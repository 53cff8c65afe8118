/*
 * Open targets, kept for a minute after their last use: opening one costs more than looking at it.
 * A handle serves one thread at a time, so one question to a target waits for the other; slow ones
 * (route.h) have a handle of their own.
 */
#ifndef PRB_SERVE_TARGETS_H
#define PRB_SERVE_TARGETS_H

#include <limits.h>

#include "serve/http/route.h"

#define PRB_SERVE_TARGETS_MAX 32

struct prb_serve_target;

/* files: paths of dumps and cores that are targets too, "file:NAME"; borrowed, ends with NULL. */
struct prb_serve_targets *prb_serve_targets_new(const char *const *files);
void prb_serve_targets_free(struct prb_serve_targets *targets);
PRB_DEFINE_AUTO_PTR(prb_serve_targets, struct prb_serve_targets, prb_serve_targets_free)
/* Close those that nobody has asked for a minute. */
void prb_serve_targets_sweep(struct prb_serve_targets *targets);

/* A target by name, for one question. */
struct prb_serve_wanted {
    const struct prb_serve *serve; /* whose processes it may be; NULL: any */
    struct prb_serve_targets *targets;
    const char *name;
    bool slow;    /* of its two handles that for questions that may take long */
    double until; /* s, monotonic */
};
/* What the first part of a job's path names. */
struct prb_serve_wanted prb_serve_wanted(const struct prb_serve_job *job);
/*
 * The target of that name, for this thread alone until it is released: "123", "123.456" (456: field
 * 22 of proc_pid_stat(5), as /processes gives it), "file:NAME".  Errors: NOT_FOUND, GONE (the process
 * has ended, or is another one), TIMEOUT (others look at it until then), those of prb_target_open.
 */
struct prb_serve_target *prb_serve_target_hold_wanted(const struct prb_serve_wanted *wanted,
                                                      struct prb_error *err);
/* The same for a job. */
struct prb_serve_target *prb_serve_target_hold(const struct prb_serve_job *job,
                                               struct prb_error *err);
void prb_serve_target_release(struct prb_serve_target *held);
PRB_DEFINE_AUTO_PTR(prb_serve_target, struct prb_serve_target, prb_serve_target_release)

/* What the command line takes for it, a pid or a path; nothing is opened.  Errors: those of its
 * name. */
bool prb_serve_target_spec(const struct prb_serve_wanted *wanted, char out[PATH_MAX],
                           struct prb_error *err);
/* The live process that the first part of the path names, as digits; nothing is opened.  Errors:
 * those of its name; UNSUPPORTED: it is a file. */
bool prb_serve_target_process(const struct prb_serve_job *job, char out[16], struct prb_error *err);

struct prb_target *prb_serve_target_open(const struct prb_serve_target *held);
/* Its tables; opened at the first use. */
struct prb_db *prb_serve_target_db(struct prb_serve_target *held, struct prb_error *err);
/* What to give the command line for it: a pid or a path. */
const char *prb_serve_target_name(const struct prb_serve_target *held);

/* One look serves all who ask the same: the answer with this key if it was made after the question
 * had come, or at most 20 ms before. */
bool prb_serve_target_shared(const struct prb_serve_target *held, const char *key, double asked,
                             struct prb_answer *out);
void prb_serve_target_share(struct prb_serve_target *held, const char *key,
                            const struct prb_answer *answer);

/* The folder of crash dumps: that of PROBING_CRASH_DIR, else the user's. */
bool prb_serve_crash_folder(char out[PRB_CRASH_PATH_MAX], struct prb_error *err);

/* The start time of a process, field 22; 0: there is none. */
uint64_t prb_serve_started(pid_t pid);

#endif
