/*
 * What PyTorch labels itself: one observer of its user scopes, at::addGlobalCallback
 * (in its record_function header, the same from 1.13 to 2.14).  Other scopes, those of each
 * operator, never come here.  Called on any thread, often without the GIL.
 */
#include <dlfcn.h>
#include <string.h>

#include "inject/probe/torch/ending.h"
#include "inject/probe/torch/torch.h"

#define LIBRARY "libtorch_cpu.so" /* Python loads it RTLD_LOCAL */
#define SCOPE_USER 7              /* at::RecordScope::USER_SCOPE */
#define OPEN_MAX 1024             /* scopes that are open at once; a power of two */
#define OPEN_TRIES 16

/* at::RecordFunctionCallback, passed by value. */
struct callback {
    void *start, *end;
    double probability;
    bool scopes[10], inputs, outputs, ids;
};
_Static_assert(sizeof(struct callback) == 40, "as in PyTorch");

static struct {
    uint64_t (*add)(struct callback callback);
    void (*remove)(uint64_t handle);
    const char *(*name)(const void *function);
    bool found;
} library;
static _Atomic uint64_t handle;
static atomic_bool registered;

/* ---- scopes that are open ---- */

struct scope {
    _Alignas(64) const void *_Atomic function; /* at::RecordFunction: matches begin and end */
    const struct prb_torch_label *label;
    struct prb_torch_event event;  /* its end is not known yet */
    struct prb_cuda_memory before; /* if the event says so */
    unsigned arming;
};

static struct scope scopes[OPEN_MAX];
static const char taken; /* stands in function while the rest is filled in, or used up */

static size_t place_of(const void *function)
{
    return ((uintptr_t)function >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 54;
}

static struct scope *open_scope(const void *function)
{
    for (size_t i = 0; i < OPEN_TRIES; i++) {
        struct scope *scope = &scopes[(place_of(function) + i) & (OPEN_MAX - 1)];
        const void *none = NULL;
        if (atomic_compare_exchange_strong(&scope->function, &none, &taken))
            return scope;
    }
    return NULL;
}

/* It is the caller's, who closes it. */
static struct scope *find_scope(const void *function)
{
    for (size_t i = 0; i < OPEN_TRIES; i++) {
        struct scope *scope = &scopes[(place_of(function) + i) & (OPEN_MAX - 1)];
        if (atomic_load_explicit(&scope->function, memory_order_acquire) == function) {
            atomic_store_explicit(&scope->function, &taken, memory_order_relaxed);
            return scope;
        }
    }
    return NULL;
}

static void close_scope(struct scope *scope)
{
    atomic_store_explicit(&scope->function, NULL, memory_order_release);
}

/* ---- the observer ---- */

static void enter(struct prb_torch_thread *thread, enum prb_trace_stage stage, uint64_t now)
{
    if (stage == PRB_TRACE_DATA) {
        prb_torch_data_begins(thread, now);
        prb_torch_enter(thread, PRB_PHASE_DATA, now);
    } else if (stage == PRB_TRACE_OPTIMIZER) {
        prb_torch_enter(thread, PRB_PHASE_OPTIMIZER, now);
        prb_torch_device_mark(thread, PRB_PHASE_OPTIMIZER);
    }
}

static void leave(struct prb_torch_thread *thread, const struct prb_torch_event *event)
{
    if (event->stage == PRB_TRACE_DATA || event->stage == PRB_TRACE_OPTIMIZER)
        prb_torch_leave(thread, event->end);
    else if (event->stage == PRB_TRACE_COLLECTIVE)
        prb_torch_move(thread, PRB_PHASE_COMM_WAIT, event->end - event->begin, event->end);
}

static uintptr_t object_of(struct prb_torch_label *label, const char *name)
{
    if (label->stage == PRB_TRACE_COLLECTIVE)
        return atomic_fetch_add_explicit(&label->seen, 1, memory_order_relaxed);
    bool updates = label->stage == PRB_TRACE_OPTIMIZER || label->stage == PRB_TRACE_ZERO_GRAD;
    return updates ? prb_torch_frame_self(name) : 0;
}

static void begin_scope(const void *function)
{
    const char *name = library.name(function);
    if (atomic_load_explicit(&prb_torch_checking, memory_order_relaxed)) {
        prb_torch_check_sees(name);
        return;
    }
    struct prb_torch_thread *thread =
        atomic_load_explicit(&prb_torch.on, memory_order_acquire) ? prb_torch_thread() : NULL;
    struct scope *scope = thread ? open_scope(function) : NULL;
    if (!scope)
        return;
    struct prb_torch_label *label =
        name ? prb_torch_label_find(name, strnlen(name, PRB_TORCH_LABEL_MAX)) : prb_torch_labels;
    uint64_t now = prb_clock_ns();
    uintptr_t object = object_of(label, name);
    enter(thread, label->stage, now);
    if (label->stage == PRB_TRACE_COLLECTIVE)
        prb_torch_collective_begins(now);
    else if (label->reduces)
        prb_torch_reducer_called();
    int64_t step = prb_torch_step_of(false);
    scope->label = label;
    scope->arming = thread->arming;
    scope->event = (struct prb_torch_event){
        .begin = now,
        .stage = label->stage,
        .object = object,
        .label = (unsigned)(label - prb_torch_labels),
        .depth = thread->depth,
        .step = step,
        .number = prb_torch_number(thread, step),
        .tid = thread->tid,
        .before = prb_cuda_memory_read(&scope->before) ? &scope->before : NULL,
    };
    thread->scopes++;
    atomic_store_explicit(&scope->function, function, memory_order_release);
}

static void record_scope(const struct scope *scope)
{
    const struct prb_torch_event *event = &scope->event;
    if (event->stage == PRB_TRACE_SCOPE &&
        !atomic_load_explicit(&prb_torch.sampled, memory_order_relaxed))
        return;
    prb_torch_record(event);
    if (scope->label->users && atomic_load_explicit(&prb_torch.spans, memory_order_relaxed))
        prb_torch_record_span(event, scope->label->text);
}

static void end_event(struct prb_torch_thread *thread, struct scope *scope)
{
    struct prb_torch_event *event = &scope->event;
    uint64_t now = prb_clock_ns();
    bool here = thread->tid == event->tid, updates = event->stage == PRB_TRACE_OPTIMIZER;
    event->end = now;
    event->async = !here;
    if (here)
        leave(thread, event);
    else if (event->stage == PRB_TRACE_COLLECTIVE)
        prb_torch_collective_ends(event->begin, now);
    if (updates)
        event->step = prb_torch_step_of(true);
    record_scope(scope);
    if (here && updates)
        prb_torch_optimizer_ends(thread, now, event->object, event->label);
    if (here && prb_torch_ends_label(event->label))
        prb_torch_step_ends(thread, now, false);
}

static void end_scope(const void *function)
{
    struct scope *scope = find_scope(function);
    if (!scope)
        return;
    struct prb_torch_thread *thread =
        atomic_load_explicit(&prb_torch.on, memory_order_acquire) ? prb_torch_thread() : NULL;
    if (thread && thread->arming == scope->arming)
        end_event(thread, scope);
    close_scope(scope);
}

/* std::unique_ptr<ObserverContext> (*)(const RecordFunction &): the pointer is returned through memory, whose address
 * x86-64 hands over in the first register, and wants back. */
#if defined(__x86_64__)
static void *on_start(void **result_out, const void *function)
{
    *result_out = NULL;
    begin_scope(function);
    return result_out;
}
#elif defined(__aarch64__)
/* ... and AArch64 in x8 (Procedure Call Standard, "Result return"), which C has no name for. */
__attribute__((used)) static void begin_here(const void *function) __asm__("prb_torch_begin_here");
static void begin_here(const void *function) { begin_scope(function); }
void *on_start(void **result_out, const void *function) __asm__("prb_torch_on_start")
    __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n"
        ".p2align 2\n"
        ".globl prb_torch_on_start\n"
        ".hidden prb_torch_on_start\n"
        ".type prb_torch_on_start, %function\n"
        "prb_torch_on_start:\n"
        "hint #34\n" /* bti c */
        "str xzr, [x8]\n"
        "b prb_torch_begin_here\n"
        ".size prb_torch_on_start, . - prb_torch_on_start\n"
        ".popsection");
#else
#error "the observer is not made for this processor"
#endif

/* void (*)(const RecordFunction &, ObserverContext *) */
static void on_end(const void *function, void *context)
{
    (void)context;
    end_scope(function);
}

/* ---- registering ---- */

static bool find(void *from, const char *symbol, void *out)
{
    void *found = dlsym(from, symbol);
    memcpy(out, &found, sizeof found);
    return found != NULL;
}

bool prb_torch_loaded(void)
{
    void *torch = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    if (torch)
        dlclose(torch);
    return torch != NULL;
}

/* The manager that has getStepCallbacks may be changed while others run; the one before may not, as
 * its header says. */
static bool find_library(struct prb_error *err)
{
    void *torch = dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD), *step;
    if (!torch)
        return prb_fail(err, PRB_UNSUPPORTED, "%s is not loaded", LIBRARY);
    library.found =
        find(torch, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", &library.add) &&
        find(torch, "_ZN2at14removeCallbackEm", &library.remove) &&
        find(torch, "_ZNK2at14RecordFunction4nameEv", &library.name) &&
        find(torch, "_ZN2at16getStepCallbacksENS_11RecordScopeE", &step);
    dlclose(torch); /* it stays loaded: NOLOAD only counted it */
    return library.found || prb_fail(err, PRB_UNSUPPORTED,
                                     "this PyTorch has no observer that can be changed safely");
}

bool prb_torch_observer_arm(const struct prb_py_api *py, struct prb_error *err)
{
    if (registered)
        return true;
    if (!library.found && !find_library(err))
        return false;
    struct callback callback = {.probability = 1};
    void *(*start)(void **, const void *) = on_start;
    void (*end)(const void *, void *) = on_end;
    memcpy(&callback.start, &start, sizeof start);
    memcpy(&callback.end, &end, sizeof end);
    callback.scopes[SCOPE_USER] = true;
    bool unknown = prb_torch_check_begin(py);
    handle = library.add(callback);
    registered = true;
    if (!unknown || prb_torch_check_end(py, err))
        return true;
    prb_torch_observer_disarm();
    return false;
}

void prb_torch_observer_disarm(void)
{
    if (!atomic_exchange(&registered, false))
        return;
    library.remove(handle);
    for (size_t i = 0; i < OPEN_MAX; i++) {
        const void *there = atomic_load(&scopes[i].function);
        if (there && there != &taken)
            atomic_compare_exchange_strong(&scopes[i].function, &there, NULL);
    }
}

/* No thread of the parent's is inside here. */
void prb_torch_observer_forked(void) { memset(scopes, 0, sizeof scopes); }
