/*
 * What was seen of one process, a moment a second: who stood where, CPU time, memory, step.  watch.c
 * looks at the process; the others read.
 *
 * Each call but begin needs the lock of its process.
 */
#ifndef PRB_SERVE_SEEN_H
#define PRB_SERVE_SEEN_H

#include <pthread.h>

#include "serve/live/watch.h"
#include "table/recorded/last_step.h"

struct prb_seen_change {
    uint32_t thread, node; /* node 0: the thread has ended */
};

struct prb_seen_moment {
    double time;   /* s since the epoch */
    uint64_t from; /* its changes: number of the first, and of the one after the last */
    uint64_t to;
    double rss;
    float cpu; /* cores; below 0: not known */
    int threads;
    int64_t step;
    uint32_t changed;
};

/* A thread of the profile, by its index there. */
struct prb_seen_thread {
    uint32_t node;
    uint64_t look;  /* the last that found it */
    double changed; /* s, monotonic */
};

struct prb_seen {
    pthread_mutex_t lock; /* of all that follows */
    pid_t pid;            /* 0: the place is free */
    uint64_t started;
    struct prb_profiler *profiler;
    struct prb_profile *ended; /* its profile, when the process has ended */
    double end;                /* s, monotonic: when that was */
    struct prb_step_reader *steps;
    struct prb_seen_moment *moments; /* PRB_WATCH_MOMENTS, by number */
    uint64_t moment_count;           /* so far */
    uint64_t moment_first;           /* the first that is kept */
    struct prb_seen_change *changes; /* PRB_WATCH_CHANGES, by number */
    uint64_t change_count;
    struct prb_seen_thread *threads;
    size_t thread_count, thread_cap;
    uint64_t look;
    double ticks; /* of CPU time, at the last look */
    double at;    /* s, monotonic: of it */
};

/* Begin to look at a process, in the place of another one.  False: it cannot be looked at. */
bool prb_seen_begin(struct prb_seen *item, pid_t pid);
void prb_seen_look(struct prb_seen *item);
/* All but its lock. */
void prb_seen_forget(struct prb_seen *item);

/* Borrowed. */
const struct prb_profile *prb_seen_profile(const struct prb_seen *item);
/* As prb_watch_since has it. */
void prb_seen_since(const struct prb_seen *item, const struct prb_stacks *stacks, double *out);
/* At the last look.  False: none yet, or the process has ended. */
bool prb_seen_measured(const struct prb_seen *item, struct prb_measured *out);
/* As prb_watch_history has it (history.c).  NULL: no memory. */
json_t *prb_seen_history(struct prb_seen *item, double after, double until, double *last_out);

#endif
