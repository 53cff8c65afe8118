/*
 * The rings in which the probe records what PyTorch does (inject/probe/torch), as both sides know
 * them: few numbers a row, which the tables python.torch_trace and python.torch_step_timing spread
 * out.  libc only.
 */
#ifndef PRB_TRAINING_TRACE_H
#define PRB_TRAINING_TRACE_H

#include <stdint.h>

enum prb_trace_stage {
    PRB_TRACE_FORWARD, /* a module's call */
    PRB_TRACE_BACKWARD,
    PRB_TRACE_OPTIMIZER,
    PRB_TRACE_ZERO_GRAD,
    PRB_TRACE_DATA,
    PRB_TRACE_COLLECTIVE,
    PRB_TRACE_SCOPE, /* any other label of PyTorch's or the user's */
    PRB_TRACE_STAGES
};

/* ---- what was called: one row each, at its end ---- */

#define PRB_TRACE_RING "torch_trace"
#define PRB_TRACE_COLUMNS                                                                          \
    "begin:time\n"                                                                                 \
    "duration:integer:ns\n"                                                                        \
    "object:integer:addr:of the module or the optimizer; 0: not known; of a collective: its "      \
    "number\n"                                                                                     \
    "label:integer:id:of a row of torch_names: the class, or the text of the scope\n"              \
    "place:integer::stage, recompute, depth, weight (training/trace.h)\n"                          \
    "step:integer::local_step\n"                                                                   \
    "order:integer::micro-step and the number within the step\n"                                   \
    "thread:integer::native id of the thread, and the number of the arming\n"
/* Of a process whose PyTorch has a CUDA allocator: what it has at the row's end, and how much more than
 * at its begin.  NULL: not known. */
#define PRB_TRACE_MEMORY_COLUMNS                                                                   \
    PRB_TRACE_COLUMNS                                                                              \
    "allocated:integer:B\n"                                                                        \
    "max_allocated:integer:B\n"                                                                    \
    "cached:integer:B\n"                                                                           \
    "max_cached:integer:B\n"                                                                       \
    "allocated_delta:integer:B\n"                                                                  \
    "max_allocated_delta:integer:B\n"
enum prb_trace_column {
    PRB_TRACE_BEGIN,
    PRB_TRACE_DURATION,
    PRB_TRACE_OBJECT,
    PRB_TRACE_LABEL,
    PRB_TRACE_PLACE,
    PRB_TRACE_STEP,
    PRB_TRACE_ORDER,
    PRB_TRACE_THREAD,
    PRB_TRACE_COLUMN_COUNT,
    PRB_TRACE_ALLOCATED = PRB_TRACE_COLUMN_COUNT,
    PRB_TRACE_MAX_ALLOCATED,
    PRB_TRACE_CACHED,
    PRB_TRACE_MAX_CACHED,
    PRB_TRACE_ALLOCATED_DELTA,
    PRB_TRACE_MAX_ALLOCATED_DELTA,
    PRB_TRACE_MEMORY_COLUMN_COUNT
};

/* place */
#define PRB_TRACE_STAGE(place) ((unsigned)((place) & 0xf))
#define PRB_TRACE_RECOMPUTE(place) ((place) >> 4 & 1)
#define PRB_TRACE_ASYNC(place) ((place) >> 5 & 1) /* it ended on another thread */
#define PRB_TRACE_DEPTH(place) ((unsigned)((place) >> 8 & 0xffff))
#define PRB_TRACE_WEIGHT(place) ((int64_t)((place) >> 24 & 0xffffffff))
static inline int64_t prb_trace_place(unsigned stage, unsigned recompute, unsigned async,
                                      unsigned depth, uint32_t weight)
{
    return (int64_t)(stage | recompute << 4 | async << 5 |
                     (uint64_t)(depth < 0xffff ? depth : 0xffff) << 8 | (uint64_t)weight << 24);
}
/* rate: such bits << 32 | weight */
#define PRB_TRACE_SAMPLED 1
#define PRB_TRACE_SHADOW 2
/* order: micro-step << 32 | number; thread: arming << 32 | tid */
#define PRB_TRACE_HIGH(word) ((int64_t)((uint64_t)(word) >> 32))
#define PRB_TRACE_LOW(word) ((int64_t)((uint64_t)(word) & 0xffffffff))
static inline int64_t prb_trace_word(uint64_t high, uint64_t low)
{
    return (int64_t)(high << 32 | (low & 0xffffffff));
}

/* ---- names, which come later than the rows that have them ---- */

#define PRB_TRACE_NAMES_RING "torch_names"
#define PRB_TRACE_NAMES_COLUMNS                                                                    \
    "kind:integer\n"                                                                               \
    "arming:integer\n"                                                                             \
    "key:integer::a label's number, an object's address, or the value itself\n"                    \
    "name:text\n"                                                                                  \
    "class:text\n"                                                                                 \
    "number:integer::of a module's root: its address; of an optimizer: which of its class\n"
enum prb_trace_name_column {
    PRB_TRACE_NAME_KIND,
    PRB_TRACE_NAME_ARMING,
    PRB_TRACE_NAME_KEY,
    PRB_TRACE_NAME_NAME,
    PRB_TRACE_NAME_CLASS,
    PRB_TRACE_NAME_NUMBER,
    PRB_TRACE_NAME_COLUMN_COUNT
};
enum prb_trace_kind {
    PRB_TRACE_KIND_LABEL,     /* key: number; holds for all armings */
    PRB_TRACE_KIND_MODULE,    /* key: address */
    PRB_TRACE_KIND_OPTIMIZER, /* key: address */
    PRB_TRACE_KIND_OFFSET,    /* key: global_step - local_step; name: of the counter */
    PRB_TRACE_KIND_PROCESS,   /* key: pid; name: role; number: rank << 32 | world size, or -1 */
};

/* ---- steps ---- */

#define PRB_TRACE_STEPS_RING "torch_step_timing"
#define PRB_TRACE_STEPS_COLUMNS                                                                    \
    "end:time\n"                                                                                   \
    "step:integer::local_step\n"                                                                   \
    "duration:integer:ns\n"                                                                        \
    "data:integer:ns\n"                                                                            \
    "forward:integer:ns\n"                                                                         \
    "backward:integer:ns\n"                                                                        \
    "optimizer:integer:ns\n"                                                                       \
    "comm_wait:integer:ns\n"                                                                       \
    "counts:integer::updates and micro-steps\n"                                                    \
    "events:integer:count\n"                                                                       \
    "rate:integer::whether it has module rows, is a shadow, and one of how many steps has\n"       \
    "overhead:real:ratio\n"                                                                        \
    "object:integer:addr:of the optimizer; 0: not known\n"                                         \
    "label:integer:id:of the optimizer's class\n"                                                  \
    "thread:integer::native id of the thread, and the number of the arming\n"
enum prb_trace_step_column {
    PRB_TRACE_STEP_END,
    PRB_TRACE_STEP_STEP,
    PRB_TRACE_STEP_DURATION,
    PRB_TRACE_STEP_DATA,
    PRB_TRACE_STEP_FORWARD,
    PRB_TRACE_STEP_BACKWARD,
    PRB_TRACE_STEP_OPTIMIZER,
    PRB_TRACE_STEP_COMM_WAIT,
    PRB_TRACE_STEP_COUNTS,
    PRB_TRACE_STEP_EVENTS,
    PRB_TRACE_STEP_RATE,
    PRB_TRACE_STEP_OVERHEAD,
    PRB_TRACE_STEP_OBJECT,
    PRB_TRACE_STEP_LABEL,
    PRB_TRACE_STEP_THREAD,
    PRB_TRACE_STEP_COLUMN_COUNT
};

/* ---- what steps took on their device: it is known later ---- */

#define PRB_TRACE_DEVICE_RING "torch_device"
#define PRB_TRACE_DEVICE_COLUMNS                                                                   \
    "end:time\n"                                                                                   \
    "step:integer::local_step\n"                                                                   \
    "forward:integer:ns\n"                                                                         \
    "backward:integer:ns\n"                                                                        \
    "optimizer:integer:ns\n"                                                                       \
    "thread:integer::native id of the thread, and the number of the arming\n"
enum prb_trace_device_column {
    PRB_TRACE_DEVICE_END,
    PRB_TRACE_DEVICE_STEP,
    PRB_TRACE_DEVICE_FORWARD,
    PRB_TRACE_DEVICE_BACKWARD,
    PRB_TRACE_DEVICE_OPTIMIZER,
    PRB_TRACE_DEVICE_THREAD,
    PRB_TRACE_DEVICE_COLUMN_COUNT
};

#endif
