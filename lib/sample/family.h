/*
 * The processes that sampled processes start: found by /proc/PID/task/TID/children (proc(5)),
 * looked at again while they may still become Python, and followed through those that never do
 * (a shell, a launcher).
 */
#ifndef PRB_SAMPLE_FAMILY_H
#define PRB_SAMPLE_FAMILY_H

#include "base/error.h"

struct prb_kin {
    pid_t pid;
    bool member;       /* sampled */
    bool ranks;        /* no member, and only ranks of a job are sampled of what it starts */
    unsigned tries;    /* to sample it */
    uint64_t next_try; /* ns */
    bool seen;         /* in this look */
};

struct prb_family {
    bool children; /* what a member starts is sampled, too */
    struct prb_kin *items;
    size_t count, cap;
    uint64_t next_look; /* ns */
};
void prb_family_deinit(struct prb_family *family);

/* One that is sampled already (member), or that is only followed; ranks: as in struct prb_kin. */
void prb_family_add(struct prb_family *family, pid_t pid, bool member, bool ranks);
/* Look for new ones, if it is time: add is asked for each that seems to be Python. */
typedef bool prb_family_add_fn(void *context, pid_t pid);
void prb_family_look(struct prb_family *family, uint64_t now, prb_family_add_fn *add,
                     void *context);

#endif
