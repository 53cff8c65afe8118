/*
 * One walk of one thread's frame chain, through a view.
 */
#ifndef PRB_PY_WALK_H
#define PRB_PY_WALK_H

#include "py/stack.h"

struct prb_walk {
    struct prb_raw_frame *frames; /* innermost first */
    size_t count, cap;
    bool broken; /* the chain ends in error; the frames before are good */
    struct prb_error error;
};

void prb_walk_deinit(struct prb_walk *walk);
/* Touch what sampling reads of a thread state, so that it is one span of the view; false when it cannot be read. */
bool prb_walk_head(const struct prb_layout *layout, struct prb_view *view, prb_addr tstate);
/* Replace walk's contents.  anchors: also where each call of the evaluator stands on the native
 * stack. */
void prb_walk_thread(struct prb_py *py, struct prb_view *view, prb_addr tstate, bool anchors,
                     struct prb_walk *walk);
/* The same frames and code objects, and the same call sites but for the innermost frame's. */
bool prb_walk_equal(const struct prb_walk *a, const struct prb_walk *b);
/* The rows of a chain that begins at a frame (a suspended generator's, say), at most limit. */
void prb_walk_frames(struct prb_py *py, struct prb_view *view, prb_addr frame, size_t limit,
                     struct prb_walk *walk);
/* A field through a view, as prb_py_field. */
bool prb_view_field(struct prb_view *view, const struct prb_layout *layout, prb_addr addr,
                    enum prb_field field, uint64_t *out);

#endif
