/* The child process that looks at one rank: the host's side, and its own. */
#ifndef PRB_FLEET_CHILD_H
#define PRB_FLEET_CHILD_H

#include "fleet/message/message.h"

struct prb_fleet_child {
    struct prb_fleet_member member;
    pid_t pid;    /* 0: none runs */
    bool started; /* by the starter, which then ends it */
    int fd;       /* of the socket pair; -1 */
    /* of the question that it works on */
    bool asked, answered;
    struct prb_buf in; /* what came of its reply: a length of 8 bytes, and the reply */
};

/* Start it, if it does not run: by the starter (starter.h), where this process has one. */
bool prb_fleet_child_start(struct prb_fleet_child *child, struct prb_error *err);
/* Kill it, and wait for its end if that comes at once. */
void prb_fleet_child_end(struct prb_fleet_child *child);
/* The same of many, which end side by side. */
void prb_fleet_children_end(struct prb_fleet_child *children, size_t count);
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

/* The child's own life, after fork: answer what comes by fd until that ends. */
_Noreturn void prb_fleet_child_live(const struct prb_fleet_member *member, int fd, pid_t parent);
void prb_fleet_child_serve(const struct prb_fleet_member *member, int fd);
/* Close all that the parent had but fd and standard error. */
void prb_fleet_child_leave(int fd);
/* Whether a process that was killed ended within 10 ms; it is waited for then. */
bool prb_fleet_child_wait(pid_t pid);

#endif
