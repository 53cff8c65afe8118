/* Reading collapsed stacks: files of them, and rows of python.stack_samples. */
#ifndef PRB_PROFILE_COLLAPSED_H
#define PRB_PROFILE_COLLAPSED_H

#include "profile/profile.h"

/* Errors: NOT_FOUND, CORRUPT (says which line). */
struct prb_profile *prb_profile_read_collapsed(const char *path, struct prb_error *err);

/* The stack of one thread, found so often. */
struct prb_folded {
    pid_t pid, tid;     /* tid 0: not known */
    int rank;           /* -1: none */
    const char *thread; /* NULL: it has no name */
    const char *stack;  /* frames as "function (file.py:12)", the outermost first */
    uint64_t samples;
};
/* An empty profile, of so many samples a second.  start: s since the epoch. */
struct prb_profile *prb_profile_of_folded(enum prb_profile_mode mode, double rate, double start,
                                          double seconds, struct prb_error *err);
/* To it alone.  A thread's stacks come one after the other.  Errors: NOMEM. */
bool prb_profile_add_folded(struct prb_profile *profile, const struct prb_folded *one,
                            struct prb_error *err);

#endif
