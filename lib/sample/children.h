/*
 * The processes that sampled processes start: found by /proc/PID/task/TID/children (proc(5)),
 * looked at again while they may still become Python, and followed through those that never do
 * (a shell, a launcher).
 */
#ifndef PRB_SAMPLE_CHILDREN_H
#define PRB_SAMPLE_CHILDREN_H

#include "base/error.h"

struct prb_child {
    pid_t pid;
    bool sampled;
    bool ranks;        /* it is not sampled, and of what it starts only ranks of a job are */
    unsigned tries;    /* to sample it */
    uint64_t next_try; /* ns */
    bool seen;         /* in this search */
};

struct prb_children {
    bool of_sampled; /* what a sampled process starts is sampled, too */
    struct prb_child *items;
    size_t count, cap;
    uint64_t next_search; /* ns */
};
void prb_children_deinit(struct prb_children *children);

/* A process that is sampled already, or that is only followed; ranks: as in struct prb_child. */
void prb_children_add(struct prb_children *children, pid_t pid, bool sampled, bool ranks);
/* Search for new ones, if it is time: add is called for each that seems to be Python. */
typedef bool prb_children_add_fn(void *context, pid_t pid);
void prb_children_search(struct prb_children *children, uint64_t now, prb_children_add_fn *add,
                         void *context);

#endif
