/*
 * Interpreters, threads and their Python frames: raw rows first (addresses and positions), names
 * after.
 */
#ifndef PRB_PY_STACK_H
#define PRB_PY_STACK_H

#include "py/code.h"
#include "py/py.h"

#define PRB_INTERPRETERS_MAX 4096
#define PRB_THREADS_MAX 65536
#define PRB_FRAMES_MAX 100000

struct prb_interpreter {
    prb_addr addr;
    int64_t id;          /* 0: the main one */
    bool gc;             /* collecting garbage */
    prb_addr gil;        /* address of its GIL's struct; 0: not known */
    prb_addr gil_holder; /* the thread state that holds it; 0: nobody */
};

/* A row of a frame chain, innermost first. */
struct prb_raw_frame {
    prb_addr frame;      /* the frame struct or object */
    prb_addr code;       /* its code object; 0: a shim (it only bounds a call of the evaluator) */
    int32_t instruction; /* of the current instruction in its code, bytes; -1: not begun */
    uint8_t owner;       /* 0 up to 3.10 */
    bool entry;          /* the outermost of one call of the evaluator */
    /* entry frames: an address on the native stack that lies in the evaluator's frame; 0: none.
     * Where trait anchor is FRAME_POINTER the frame's own address is what its evaluator spills. */
    prb_addr anchor;
};

/* Where a chain ended before its outermost frame, and why. */
struct prb_broken {
    const char *why; /* static; NULL: it did not */
    prb_addr at;
    bool cut; /* it goes on: there are more frames than are followed */
};
/* As an error, FAULT; false. */
bool prb_broken_error(const struct prb_broken *broken, struct prb_error *err);

struct prb_raw_thread {
    prb_addr tstate;
    size_t interpreter; /* index */
    uint64_t thread_id; /* pthread */
    uint64_t native_id; /* 3.11+, in the target's pid namespace; 0 before */
    struct prb_raw_frame *frames;
    size_t frame_count;
    bool unstable;
    bool unmoved; /* proven to be where it was in the last sample: it had no GIL since */
    struct prb_broken broken; /* the frames before are good */
};

struct prb_raw_stacks {
    struct prb_interpreter *interpreters; /* main first */
    size_t interpreter_count;
    struct prb_raw_thread *threads;
    size_t thread_count;
    uint64_t tries, rejected;
    bool finalizing;
    bool whole;      /* the lists of threads were read to their ends; else threads are missing */
    uint64_t serial; /* of this reading */
    /* Since the reading before, serial - 1, the same threads are at the same indices, and only
     * those at these indices may have moved.  False: any may have, and active is not set. */
    bool active_only;
    const size_t *active;
    size_t active_count;
    /* active_only, and neither the stacks of these threads moved, nor did what is read along with
     * them (prb_sampler_read_along) change, since the reading before. */
    bool still;
};

#endif
