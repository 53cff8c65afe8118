/*
 * The Python frames of the calling thread, read by the offsets of the interpreter's version.  The
 * thread needs no GIL: nobody else changes its frames, and they hold what their locals refer to.
 */
#ifndef PRB_PROBE_TORCH_FRAMES_H
#define PRB_PROBE_TORCH_FRAMES_H

#include "inject/probe/python/api.h"
#include "py/layout/layout.h"

#define PRB_TORCH_FRAMES_MAX 128 /* that anybody looks through */

/* Find the interpreter's layout, once; with the GIL. */
bool prb_torch_frames_find(const struct prb_py_api *py, struct prb_error *err);
/* It, once found; else NULL. */
const struct prb_layout *prb_torch_layout(void);

/* The innermost frame; NULL: this thread runs no Python. */
const char *prb_torch_frame(void);
const char *prb_torch_frame_caller(const char *frame);
/* Its code object, borrowed; NULL: a frame of the interpreter's own. */
const char *prb_torch_frame_code(const char *frame);
/* How many locals, cells and free variables it has, and the one of an index; NULL: not bound. */
unsigned prb_torch_frame_count(const char *code);
const char *prb_torch_frame_local(const char *frame, unsigned index);

static inline uint64_t prb_torch_word(const char *at, int32_t offset)
{
    uint64_t word;
    __builtin_memcpy(&word, at + offset, sizeof word);
    return word;
}

#endif
