/*
 * How much each thread of a process holds the GIL: looks at its holder, from outside, some times a
 * second.
 */
#ifndef PRB_INSPECT_GIL_WATCH_H
#define PRB_INSPECT_GIL_WATCH_H

#include "inspect/target.h"

#define PRB_GIL_LOOK 0.1 /* s between two looks */

struct prb_gil_watch;

/* target is borrowed.  UNSUPPORTED: none of its runtimes has a GIL. */
struct prb_gil_watch *prb_gil_watch_new(struct prb_target *target, struct prb_error *err);
void prb_gil_watch_free(struct prb_gil_watch *watch);
PRB_DEFINE_AUTO_PTR(prb_gil_watch, struct prb_gil_watch, prb_gil_watch_free)
/* One that fails does not count. */
void prb_gil_watch_look(struct prb_gil_watch *watch);

struct prb_gil_shares {
    size_t looks;
    struct prb_gil_share {
        pid_t tid; /* in the caller's pid namespace; 0: it has ended */
        size_t held;
    } *items;
    size_t count;
};
void prb_gil_shares_deinit(struct prb_gil_shares *shares);
PRB_DEFINE_AUTO(prb_gil_shares, struct prb_gil_shares, prb_gil_shares_deinit)
/* What the looks since the last call said; the next look begins anew. */
bool prb_gil_watch_take(struct prb_gil_watch *watch, struct prb_gil_shares *out,
                        struct prb_error *err);
/* Of the looks, in %; -1: there were none. */
double prb_gil_share_of(const struct prb_gil_shares *shares, pid_t tid);

#endif
