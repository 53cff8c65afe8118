/*
 * Recording what PyTorch does, from C alone: calls of modules by the slot tp_call of their classes
 * (slots.c), backward by the engine's method (backward.c), everything that PyTorch labels itself by
 * one observer of its user scopes (observer.c).  step.c makes steps of it, record.c rows.
 *
 * The hooks run on threads of the program: they take no lock that is held for long, call no Python,
 * and pass everything through while nothing is armed.
 */
#ifndef PRB_PROBE_TORCH_TORCH_H
#define PRB_PROBE_TORCH_TORCH_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/error.h"
#include "inject/probe/cuda/allocator.h"
#include "inject/probe/python/api.h"
#include "training/trace.h"

/* ---- threads (thread.c) ---- */

/* What a thread spends its time on; each moment belongs to the innermost one. */
enum prb_torch_phase {
    PRB_PHASE_OTHER,
    PRB_PHASE_DATA,
    PRB_PHASE_FORWARD,
    PRB_PHASE_BACKWARD,
    PRB_PHASE_OPTIMIZER,
    PRB_PHASE_COMM_WAIT,
    PRB_PHASES
};
#define PRB_PHASE_DEPTH_MAX 32 /* entered at once; deeper ones count for the last */

struct prb_torch_thread {
    int64_t tid;     /* native id */
    unsigned depth;  /* calls of modules that it is in */
    unsigned arming; /* for which its counts are */
    int64_t step;    /* for which number counts */
    uint32_t number; /* of rows of the step */
    uint64_t calls, rows,
        scopes;       /* since the step began: of modules; of them with a row; labelled */
    unsigned entered; /* phases */
    unsigned char phases[PRB_PHASE_DEPTH_MAX];
    uint64_t hook_begin;        /* ns: of the optimizer's step that a hook saw begin; 0: none */
    uint64_t since;             /* ns: when the innermost phase began, or another one in it ended */
    uint64_t spent[PRB_PHASES]; /* ns, since the step began */
};

/* The calling thread's, anew where its counts are of an earlier arming; NULL: no memory. */
struct prb_torch_thread *prb_torch_thread_begin(void);
extern struct prb_torch_threads {
    atomic_bool ready; /* the key is made */
    pthread_key_t key;
} prb_torch_threads;
void prb_torch_enter(struct prb_torch_thread *thread, enum prb_torch_phase phase, uint64_t now);
void prb_torch_leave(struct prb_torch_thread *thread, uint64_t now);
/* So much of the time until now, ns, counts for another phase. */
void prb_torch_move(struct prb_torch_thread *thread, enum prb_torch_phase phase, uint64_t ns,
                    uint64_t now);
/* Time until now counts for the innermost phase. */
void prb_torch_spend(struct prb_torch_thread *thread, uint64_t now);

/* ---- what is armed (part.c) ---- */

/* Read by hooks without a lock. */
struct prb_torch {
    atomic_bool on;         /* hooks record */
    atomic_bool sampled;    /* this step has rows of modules */
    atomic_uint arming;     /* number */
    atomic_uint weight;     /* one of how many steps is sampled */
    atomic_int backward;    /* outermost and inner ones that run now, of all threads */
    _Atomic int64_t step;   /* local_step: that runs */
    _Atomic int64_t offset; /* global_step less local_step, once it was told */
    atomic_uint micro_step; /* outermost backwards that have ended in it */
    atomic_bool told;       /* a tool has told the anchor, or that there is none */
    atomic_bool counted;    /* … and offset */
    atomic_bool quiet;      /* calls of modules pass through */
    atomic_uint shallow; /* as depth, for as long as recording costs too much; 0: none has rows */
    /* As the settings say. */
    atomic_uint budget;           /* rows of modules a second */
    atomic_uint depth;            /* modules in so many calls or more have no rows */
    atomic_uint layers;           /* modules whose hash is above have none, either */
    atomic_uint layer_weight;     /* modules that one with rows stands for */
    atomic_bool backwards, spans; /* whether these have rows */
    atomic_bool random;           /* which steps are sampled is not every nth */
    atomic_bool device;           /* what a step takes on its device is measured */
};
extern struct prb_torch prb_torch;

/* The calling thread's; NULL: no memory. */
static inline struct prb_torch_thread *prb_torch_thread(void)
{
    struct prb_torch_thread *thread =
        atomic_load_explicit(&prb_torch_threads.ready, memory_order_acquire)
            ? pthread_getspecific(prb_torch_threads.key)
            : NULL;
    if (thread && thread->arming == atomic_load_explicit(&prb_torch.arming, memory_order_relaxed))
        return thread;
    return prb_torch_thread_begin();
}

/* The next number of a row of a thread within a step. */
static inline uint32_t prb_torch_number(struct prb_torch_thread *thread, int64_t step)
{
    if (thread->step != step) {
        thread->step = step;
        thread->number = 0;
    }
    return thread->number++;
}

/* ---- part.c, keep.c ---- */

/* As the settings say. */
bool prb_torch_wanted_now(void);
/* The job that puts the hooks in, or again where somebody undid it. */
struct prb_python_work;
extern const struct prb_python_work prb_torch_put_in;
/* It cannot be: for who asks. */
void prb_torch_refused(const struct prb_error *err);
/* Have the thread that waits for PyTorch, and keeps the hooks in; or have it leave. */
void prb_torch_keep(void);
void prb_torch_keep_forked(void);
/* Arm again, by a job, if somebody undid it.  Any thread; never blocks. */
void prb_torch_check(void);

/* ---- slots.c ---- */

/* With the GIL: our function into tp_call of every class below torch.nn.Module that has CPython's
 * own.  Idempotent.  NOT_FOUND: PyTorch is not imported (yet). */
bool prb_torch_slots_arm(const struct prb_py_api *py, struct prb_error *err);
/* With the GIL: CPython's own function into all that have ours. */
void prb_torch_slots_disarm(const struct prb_py_api *py);
/* Whether the class itself still has ours: others put CPython's back. */
bool prb_torch_slots_hold(void);
void prb_torch_slots_forked(void);

/* ---- backward.c ---- */

bool prb_torch_backward_arm(const struct prb_py_api *py, struct prb_error *err);
void prb_torch_backward_disarm(void);

/* ---- wait.c ---- */

/* Have calls of Work.wait counted; with the GIL.  Where torch.distributed is not there, or is another
 * one, nothing happens. */
void prb_torch_wait_arm(const struct prb_py_api *py);
void prb_torch_wait_disarm(void);
/* An outermost backward begins; one of PyTorch's reducers will reduce the gradients of a later one. */
void prb_torch_collectives_begin(void);
void prb_torch_reducer_called(void);
/* A collective begins, which may end on another thread; one that began then ended there. */
void prb_torch_collective_begins(uint64_t now);
void prb_torch_collective_ends(uint64_t begin, uint64_t now);
/* ns that the backward which ends now has waited for them. */
uint64_t prb_torch_collectives_waited(uint64_t now);

/* ---- optimizers.c: where there is no observer ---- */

/* Have PyTorch's own hooks of optimizers call us; with the GIL. */
bool prb_torch_optimizers_arm(const struct prb_py_api *py, struct prb_error *err);
void prb_torch_optimizers_disarm(const struct prb_py_api *py);

/* ---- observer.c ---- */

/* Whether PyTorch's library is loaded. */
bool prb_torch_loaded(void);
/* Register with it.  UNSUPPORTED: it has not what is needed. */
bool prb_torch_observer_arm(const struct prb_py_api *py, struct prb_error *err);
void prb_torch_observer_disarm(void);
void prb_torch_observer_forked(void);

/* ---- check.c, with the GIL ---- */

/* Before the observer is in: whether this version must be tried. */
bool prb_torch_check_begin(const struct prb_py_api *py);
/* With it in: UNSUPPORTED: a label of ours did not come. */
bool prb_torch_check_end(const struct prb_py_api *py, struct prb_error *err);
/* By the observer, while a version is tried: nothing else is to be done with a label then. */
extern atomic_bool prb_torch_checking;
void prb_torch_check_sees(const char *name);

/* ---- frames.c ---- */

/* The optimizer whose step or zero_grad this thread is about to do, an address: PyTorch's own frame
 * that opens the scope has it.  label: the scope's.  0: not known. */
uintptr_t prb_torch_frame_self(const char *label);

/* ---- cost.c ---- */

/* Measure what our own code costs, by turns of it. */
void prb_torch_cost_measure(void);
/* The same of the allocator's numbers, once they are found. */
void prb_torch_cost_measure_memory(void);
/* ns of so many events, twice what was measured: caches were warm then. */
double prb_torch_cost(uint64_t calls, uint64_t rows, uint64_t scopes);

/* ---- control.c ---- */

/* As the settings say; on: it may record less than they do. */
void prb_torch_control_begin(bool on);
/* A step has ended at that overhead (ratio).  One step of how many times as many as otherwise is to
 * have rows. */
unsigned prb_torch_control_step(double overhead, uint64_t now);

/* ---- device.c: times of a CUDA device ---- */

/* A phase begins (OTHER: one has ended) on the thread that trains. */
void prb_torch_device_mark(const struct prb_torch_thread *thread, enum prb_torch_phase phase);
/* A step of thread tid has ended, which took so many ns; the next one is or is not sampled.  ns that
 * marking this one took. */
uint64_t prb_torch_device_step_ends(uint64_t end, uint64_t duration, int64_t tid,
                                    bool next_is_sampled);
/* With a new arming. */
void prb_torch_device_begin(void);
void prb_torch_device_forked(void);

/* ---- step.c ---- */

void prb_torch_steps_begin(void);
void prb_torch_steps_end(void);
/* From time to time: a step that nothing has followed for a while has ended. */
void prb_torch_steps_rest(uint64_t now);
/* A call of a module that lies in no other one begins or ends; now: ns. */
void prb_torch_root_begins(struct prb_torch_thread *thread, uint64_t now);
void prb_torch_root_ends(struct prb_torch_thread *thread, uint64_t now);
/* An outermost backward. */
void prb_torch_backward_begins(struct prb_torch_thread *thread, uint64_t now);
void prb_torch_backward_ends(struct prb_torch_thread *thread, uint64_t now);
/* A step of an optimizer (an address, or 0), whose class's label is known. */
void prb_torch_optimizer_ends(struct prb_torch_thread *thread, uint64_t now, uintptr_t object,
                              unsigned label);
void prb_torch_data_begins(struct prb_torch_thread *thread, uint64_t now);
/* Something that the setting probing.torch.step names, other than an optimizer, ends; gil: the thread
 * has it. */
void prb_torch_step_ends(struct prb_torch_thread *thread, uint64_t now, bool gil);
/* What ends a step is another thing from now on. */
void prb_torch_steps_anew(void);
/* Which step something belongs to that begins now: behind the last optimizer of an update, as many
 * as the last one had, it is the next.  ends: that is what an optimizer's step does. */
int64_t prb_torch_step_of(bool ends);
/* Of each outermost call: how many of the steps are sampled; below 0: as many as the budget allows. */
void prb_torch_set_rate(double rate);
/* Of so many steps and those after them, these pass without a look at modules, to compare with. */
void prb_torch_set_shadow(unsigned normal, unsigned shadow);
/* Told from outside: which optimizer's update ends a step (0: none known); whether calls of roots are
 * steps. */
void prb_torch_anchor(uintptr_t object, bool no_optimizer);
void prb_torch_steps_forked(void);

/* Steps that have ended, with one that nothing has followed yet. */
int64_t prb_torch_steps_ended(void);
/* global_step less local_step, and whose counter says so. */
void prb_torch_set_offset(int64_t offset, const char *counter);

/* ---- part.c ---- */

/* "" while off; "waiting" for PyTorch; "on", and what is not followed; "ending"; else why it is not
 * on. */
#define PRB_TORCH_STATE_MAX 1200
void prb_torch_state(char *out, size_t size);

/* ---- record.c ---- */

/* The rings, when the probe runs; every label is written again.  False: err. */
bool prb_torch_record_begin(struct prb_error *err);
void prb_torch_record_end(void);
/* … and that of what steps take on a device, once there may be one. */
void prb_torch_record_devices(void);
struct prb_torch_event {
    uint64_t begin, end; /* ns of the monotonic clock */
    enum prb_trace_stage stage;
    uintptr_t object;
    unsigned label, depth;
    bool recompute, async;
    int64_t step;
    uint32_t number;
    int64_t tid;                          /* where it began */
    const struct prb_cuda_memory *before; /* as it began; NULL: not known */
};
void prb_torch_record(const struct prb_torch_event *event);
struct prb_torch_step {
    uint64_t end, duration; /* ns */
    int64_t step;
    uint64_t spent[PRB_PHASES];
    unsigned updates, micro_steps;
    uint64_t events;
    double overhead; /* ratio */
    bool sampled, shadow;
    unsigned weight;
    uintptr_t object;
    unsigned label;
    int64_t tid;
};
/* What its phases took on the device. */
struct prb_torch_device_step {
    uint64_t end; /* ns, of the step */
    int64_t step, tid;
    unsigned arming;
    uint64_t spent[PRB_PHASES]; /* ns */
};
void prb_torch_record_device_step(const struct prb_torch_device_step *step);
/* A row of python.spans, for a label of the user's. */
void prb_torch_record_span(const struct prb_torch_event *event, const char *name);
/* A row of python.events, of now; attributes: JSON. */
void prb_torch_record_moment(const char *name, const char *attributes);
void prb_torch_record_step(const struct prb_torch_step *step);
void prb_torch_record_name(enum prb_trace_kind kind, int64_t key, const char *name, size_t name_len,
                           const char *class_name, int64_t number);

/* ---- process.c ---- */

/* A name: this process, and its rank. */
void prb_torch_record_process(void);

/* ---- label.c ---- */

#define PRB_TORCH_LABEL_MAX 95    /* bytes */
#define PRB_TORCH_LABELS_MAX 2048 /* a power of two; half of it is used */

/* A text that rows name by a number, its place.  It never changes once its hash stands in it. */
struct prb_torch_label {
    _Alignas(64) _Atomic uint64_t hash; /* 0: free */
    atomic_uint seen;                   /* collectives of that name, since the arming */
    unsigned char stage, len;           /* enum prb_trace_stage */
    bool users;                         /* the program opened the scope, and not PyTorch */
    bool reduces;                       /* a call of DistributedDataParallel */
    char text[PRB_TORCH_LABEL_MAX + 1];
};
/* Place 0 is nobody's: there were too many. */
extern struct prb_torch_label prb_torch_labels[PRB_TORCH_LABELS_MAX];

/* That of a text, which is cut; the same text has the same one for ever. */
struct prb_torch_label *prb_torch_label_find(const char *text, size_t len);
static inline unsigned prb_torch_label(const char *text, size_t len)
{
    return (unsigned)(prb_torch_label_find(text, len) - prb_torch_labels);
}
void prb_torch_labels_begin(void);
/* The class in a label of an optimizer's, "Optimizer.step#AdamW.step"; "": it is none. */
void prb_torch_label_class(unsigned label, char out[PRB_TORCH_LABEL_MAX + 1]);
/* Write all of them as names again. */
void prb_torch_labels_tell(void);
void prb_torch_labels_forked(void);

/* ---- hooks.c ---- */

#include "inject/probe/torch/hooks.h"

extern atomic_uint prb_torch_listeners; /* how many there are */
void prb_torch_tell(const struct prb_torch_now *now);

#endif
