/*
 * One walk of one thread's frame chain, through a view.
 */
#ifndef PRB_PY_WALK_H
#define PRB_PY_WALK_H

#include "py/stack.h"

struct prb_walk {
    struct prb_raw_frame *frames; /* innermost first */
    size_t count, cap;
    struct prb_broken broken; /* the frames before are good */
};

void prb_walk_deinit(struct prb_walk *walk);

/* What a thread state says of itself. */
struct prb_thread_head {
    prb_addr next, interp;
    prb_addr chain; /* its innermost frame (0: none), or the CFrame that names it */
    uint64_t thread_id, native_id;
};
/* Read it, as one span of the view; false when it cannot be read. */
bool prb_walk_head(const struct prb_layout *layout, struct prb_view *view, prb_addr tstate,
                   struct prb_thread_head *out);
/* Announce to the view what the first walk of a thread will touch: its state, its CFrame, its data
 * stack, as a view of thread states (heads) says where these are. */
void prb_walk_prefetch(const struct prb_layout *layout, struct prb_view *view,
                       struct prb_view *heads, prb_addr tstate, const struct prb_thread_head *head);
/* Replace walk's contents.  anchors: also where each call of the evaluator stands on the native
 * stack. */
void prb_walk_thread(struct prb_py *py, struct prb_view *view, prb_addr tstate, bool anchors,
                     struct prb_walk *walk);
/* The frame at addr alone, without those that called it. */
bool prb_walk_one(struct prb_py *py, struct prb_view *view, prb_addr addr,
                  struct prb_raw_frame *out, struct prb_error *err);
/* Whether it broke: one that is only cut at the limit of frames is good. */
bool prb_walk_fails(const struct prb_walk *walk);
/* The same frames and code objects, and the same call sites but for the innermost frame's. */
bool prb_walk_equal(const struct prb_walk *a, const struct prb_walk *b);
/* A field through a view, as prb_py_field. */
bool prb_view_field(struct prb_view *view, const struct prb_layout *layout, prb_addr addr,
                    enum prb_field field, uint64_t *out);

#endif
