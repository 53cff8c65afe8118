/* The child process that looks at one rank: the host's side, and its own. */
#ifndef PRB_FLEET_CHILD_H
#define PRB_FLEET_CHILD_H

#include "fleet/message/message.h"

struct prb_fleet_child {
    struct prb_fleet_member member;
    pid_t pid; /* 0: none runs */
    int fd;    /* of the socket pair; -1 */
    /* of the question that it works on */
    bool asked, answered;
    struct prb_buf in; /* what came of its reply: a length of 8 bytes, and the reply */
};

/*
 * Start it, if it does not run.
 *
 * fork(2) copies the calling thread alone, and an agent has others (libnats, the collector): a lock
 * that one of them held at that moment stays locked in the child.  The C library unlocks its own
 * (malloc, stdio); SQLite's and ours may stay.  What such a lock guards is not used without it, so
 * the child gives no wrong answer, but none: it is killed at the end of its question's budget like
 * any other, its rank is failed this once, and the next question starts another.
 */
bool prb_fleet_child_start(struct prb_fleet_child *child, struct prb_error *err);
/* Kill it, and wait for its end if that comes at once. */
void prb_fleet_child_end(struct prb_fleet_child *child);
/* Send a request: text of len bytes. */
bool prb_fleet_child_ask(struct prb_fleet_child *child, const char *text, size_t len,
                         struct prb_error *err);
/* Read what is there, without waiting; sets answered when the reply is whole.  False: it ended, or
 * sent what cannot be (err says). */
bool prb_fleet_child_read(struct prb_fleet_child *child, struct prb_error *err);
/* The whole reply's bytes, behind their length. */
static inline const char *prb_fleet_child_reply(const struct prb_fleet_child *child, size_t *len)
{
    *len = child->in.len - 8;
    return child->in.data + 8;
}

/* The child's own life: answer what comes by fd until that ends. */
void prb_fleet_child_serve(const struct prb_fleet_member *member, int fd);

#endif
