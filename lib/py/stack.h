/*
 * Interpreters, threads and their Python frames: raw rows first (addresses and positions), names
 * after.
 *
 * prb_sampler reads the frame chains of all threads twice and says whether the two readings
 * agree (DESIGN 4.3); it keeps its views warm, so the next sample of the same threads is two
 * system calls, and reads only those that may have had the GIL since: where one thread keeps it,
 * a sample costs as much as that one, however many there are.
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

struct prb_raw_thread {
    prb_addr tstate;
    size_t interpreter; /* index */
    uint64_t thread_id; /* pthread */
    uint64_t native_id; /* 3.11+, in the target's pid namespace; 0 before */
    struct prb_raw_frame *frames;
    size_t frame_count;
    bool unstable;
    bool at_rest; /* proven to stand as in the last sample: it had no GIL since */
    bool broken;  /* the chain ends in error */
    struct prb_error error;
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
    /* Since the reading before, serial - 1, the same threads stand in the same places, and only
     * those at these indices may have moved.  False: any may have, and active is not told. */
    bool standing;
    const size_t *active;
    size_t active_count;
};

struct prb_sampler;

/* proc: the process that py lives in, for threads that never stand still (proc/same_cpu.h); NULL:
 * not known. */
struct prb_sampler *prb_sampler_new(struct prb_py *py, struct prb_proc *proc,
                                    struct prb_error *err);
void prb_sampler_free(struct prb_sampler *sampler);
PRB_DEFINE_AUTO_PTR(prb_sampler, struct prb_sampler, prb_sampler_free)
/* One sample of all threads.  The result is borrowed until the next call.  tries_max: readings
 * of one thread before it is called unstable (0: PRB_TRIES, some of them beside it); 1 reads
 * once and proves nothing (stopped targets, cores). */
#define PRB_TRIES 800
const struct prb_raw_stacks *prb_sampler_take(struct prb_sampler *sampler, unsigned tries_max,
                                              struct prb_error *err);
/* The result of the last take, for what wants to be of the same reading; empty before the first. */
const struct prb_raw_stacks *prb_sampler_last(const struct prb_sampler *sampler);
/* Read one thread's frames once more, for a caller that has stopped it: the result replaces the
 * thread's in place. */
bool prb_sampler_again(struct prb_sampler *sampler, size_t thread, struct prb_error *err);
/* The same of a thread that was not stopped: whether its frames are those of the result before;
 * exactly: the innermost one's instruction and the anchors, too. */
bool prb_sampler_stood(struct prb_sampler *sampler, size_t thread, bool exactly);
/* Where trait anchor is CFRAMES the anchors cost reads of their own: ask for them. */
void prb_sampler_want_anchors(struct prb_sampler *sampler, bool want);

#endif
