/*
 * The tasks of asyncio in a target, at one moment: shared by the files that make prb_async_tasks.
 *   async.c       which tasks there are, read again until two readings agree
 *   async_rows.c  the links between tasks, their loops and threads, their rows
 */
#ifndef PRB_INSPECT_ASYNC_H
#define PRB_INSPECT_ASYNC_H

#include "inspect/reading.h"
#include "py/asyncio.h"

/* For all tasks together, so that many chains within their limits stay within one limit. */
#define PRB_ASYNC_FRAMES_MAX 2000000 /* awaits read; and as many frames of running tasks shown */
#define PRB_ASYNC_LINKS_MAX 4000000  /* from a task to one that waits for it */

struct prb_async_one {
    struct prb_async_raw raw;
    struct prb_async_raw before; /* the reading before */
    size_t interpreter;          /* index */
    size_t thread, frame;        /* of one that runs: where its coroutine stands in base.raw; thread
                             SIZE_MAX: nowhere */
    bool stable, gone;
};

struct prb_async_box {
    struct prb_async_tasks tasks; /* first */
    struct prb_stacks_box rows;   /* its arena holds everything that tasks point to */
};

struct prb_async_reading {
    struct prb_reading base;
    struct prb_async_box *box;
    struct prb_async_one *ones;
    size_t count, cap;
    size_t interpreter; /* whose tasks are being found */
    size_t frames_left; /* of PRB_ASYNC_FRAMES_MAX: awaits still to read */
    size_t rows_left;   /* the same of running tasks' frames */
    bool failed;        /* out of memory meanwhile */
};

/* Before the first of a runtime's tasks is read: what the C module of asyncio says of itself. */
void prb_async_prepare(struct prb_target *target, const struct prb_runtime *runtime);

/* async_rows.c: append the tasks that were read to box->tasks. */
bool prb_async_rows(struct prb_async_reading *reading, struct prb_error *err);

#endif
