/*
 * What the server sees by itself: each Python process of its user is looked at once a second, which
 * is where "since when" and the history come from.
 *
 * A server for some processes looks at these and what descends from them alone (doors/life.h).
 *
 * A look is one sample of a profiler (probing.h) that lives as long as the process: a stack is then
 * one number, and stacks that did not change cost nothing to keep.  Ten minutes are kept, of a
 * process that ended, too.
 */
#ifndef PRB_SERVE_WATCH_H
#define PRB_SERVE_WATCH_H

#include <jansson.h>

#include "format/metrics.h"
#include "probing.h"

#define PRB_WATCH_EVERY 1.0       /* s between two looks */
#define PRB_WATCH_MOMENTS 600     /* of each process */
#define PRB_WATCH_PROCESSES 128   /* at once */
#define PRB_WATCH_CHANGES 65536   /* stacks of threads that changed, of each process */
#define PRB_WATCH_NODES_MAX 65536 /* of the profile: then it is begun anew, without a history */

struct prb_watch;
struct prb_serve;

/* Of the processes that serve has; it is borrowed.  NULL: NOMEM. */
struct prb_watch *prb_watch_new(const struct prb_serve *serve, struct prb_error *err);
/* Ends its thread. */
void prb_watch_free(struct prb_watch *watch);
/* The server has one process more: it is looked at from the next look on.  Any thread. */
void prb_watch_again(struct prb_watch *watch);

/* Processes in the calls below: started is field 22 of proc_pid_stat(5); 0: whichever has the pid. */

/* For each thread of stacks, which were just taken, the seconds since its stack changed; -1: it was
 * not seen before.  out has stacks->thread_count. */
void prb_watch_since(struct prb_watch *watch, pid_t pid, uint64_t started,
                     const struct prb_stacks *stacks, double *out);
/*
 * The moments after and until those times (s since the epoch) as JSON: {"time", "every", "frames",
 * "stacks", "threads", "moments"}.  last_out, unless NULL: the time of the last one, or after.
 * NOT_FOUND: the process was never looked at.
 */
json_t *prb_watch_history(struct prb_watch *watch, pid_t pid, uint64_t started, double after,
                          double until, double *last_out, struct prb_error *err);

/* Of each process that runs, at the last look; the command is valid in the call. */
typedef void prb_watch_fn(void *context, const struct prb_measured *now);
void prb_watch_each(struct prb_watch *watch, prb_watch_fn *each, void *context);

#endif
