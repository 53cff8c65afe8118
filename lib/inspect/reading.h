/*
 * One reading of one runtime of a target, shared by the files that make struct prb_stacks.
 *   stacks.c  the whole reading, and its Python threads
 *   rows.c    a raw frame made into a row of probing.h: names, positions, locals
 *   native.c  native frames, merged in, and threads without Python
 *   raised.c  the frames of an exception in place of the hook that reports it
 */
#ifndef PRB_INSPECT_READING_H
#define PRB_INSPECT_READING_H

#include "base/hash_map.h"
#include "inspect/target.h"

struct prb_stacks_box {
    struct prb_stacks stacks; /* first */
    struct prb_arena arena;   /* everything the stacks point to, but their threads */
    size_t thread_cap;
};

struct prb_reading {
    struct prb_target *target;
    const struct prb_runtime *runtime;
    const struct prb_stack_options *options;
    const struct prb_raw_stacks *raw;
    struct prb_tasks *tasks;
    bool *covered;                  /* tasks that have a Python thread, parallel to tasks */
    struct prb_thread_facts *facts; /* parallel to raw->threads */
    int64_t patience_ns;            /* left for threads that may wait for the GIL */
    struct prb_stacks_box *box;
    struct prb_folders folders;
    struct prb_hash_map
        named; /* by code object: what its rows have in common, in the box's arena */
};
void prb_reading_deinit(struct prb_reading *reading);
PRB_DEFINE_AUTO(prb_reading, struct prb_reading, prb_reading_deinit)

/* rows.c */
void prb_reading_folders(struct prb_reading *reading);
struct prb_frame prb_reading_python_row(struct prb_reading *reading,
                                        const struct prb_raw_frame *raw);
struct prb_frame prb_reading_native_row(struct prb_reading *reading,
                                        const struct prb_native_frame *native);
struct prb_frame prb_reading_broken_row(struct prb_reading *reading, const struct prb_error *err);
struct prb_frame prb_reading_broken_chain(struct prb_reading *reading,
                                          const struct prb_broken *broken);
/* Room for count rows and a broken one. */
struct prb_frame *prb_reading_rows(struct prb_reading *reading, size_t count,
                                   struct prb_error *err);

/* stacks.c: the time of the reading; a copy of the description of the target. */
void prb_reading_time(struct prb_target *target, double *out);
void prb_reading_info(struct prb_arena *arena, const struct prb_target_info *info,
                      struct prb_target_info *copy);

/* stacks.c: a thread to fill (not counted yet). */
struct prb_thread *prb_reading_thread(struct prb_reading *reading, struct prb_error *err);
void prb_reading_task(struct prb_reading *reading, const struct prb_task *task,
                      struct prb_thread *thread);
bool prb_reading_wants(const struct prb_reading *reading, uint64_t thread_id,
                       const struct prb_task *task);

/* raised.c: if the thread runs our hook for an exception, replace the hook's frames by those where
 * the exception was raised. */
bool prb_reading_raised(struct prb_reading *reading, const struct prb_raw_thread *raw,
                        struct prb_thread *thread, struct prb_error *err);

/* native.c: the native stacks of all threads of the runtime, read before any is named. */
struct prb_native_reading;
struct prb_native_reading *prb_native_reading_take(struct prb_reading *reading,
                                                   struct prb_error *err);
void prb_native_reading_free(struct prb_native_reading *native);
PRB_DEFINE_AUTO_PTR(prb_native_reading, struct prb_native_reading, prb_native_reading_free)
/* Rows of Python thread i, merged.  False with NOT_FOUND when its native stack could not be read. */
bool prb_native_reading_rows(struct prb_reading *reading, struct prb_native_reading *native,
                             size_t i, struct prb_thread *thread, struct prb_error *err);
/* Append the threads without Python. */
bool prb_native_threads(struct prb_reading *reading, struct prb_error *err);

#endif
