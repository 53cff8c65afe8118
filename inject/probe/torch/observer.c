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
    const void *_Atomic function; /* at::RecordFunction, by which begin and end are matched */
    int64_t tid, step;
    uint64_t begin;
    uintptr_t object;
    uint32_t number;
    unsigned label, arming, depth;
    enum prb_trace_stage stage;
};

static struct scope scopes[OPEN_MAX];
static const char taken; /* stands in function while the rest is filled in */

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

static struct scope *find_scope(const void *function)
{
    for (size_t i = 0; i < OPEN_TRIES; i++) {
        struct scope *scope = &scopes[(place_of(function) + i) & (OPEN_MAX - 1)];
        if (atomic_load_explicit(&scope->function, memory_order_acquire) == function)
            return scope;
    }
    return NULL;
}

/* ---- the observer ---- */

static void enter(struct prb_torch_thread *thread, const struct scope *scope)
{
    if (scope->stage == PRB_TRACE_DATA) {
        prb_torch_data_begins(thread, scope->begin);
        prb_torch_enter(thread, PRB_PHASE_DATA, scope->begin);
    } else if (scope->stage == PRB_TRACE_OPTIMIZER) {
        prb_torch_enter(thread, PRB_PHASE_OPTIMIZER, scope->begin);
    }
}

static void leave(struct prb_torch_thread *thread, const struct scope *scope, uint64_t now)
{
    if (scope->stage == PRB_TRACE_DATA || scope->stage == PRB_TRACE_OPTIMIZER)
        prb_torch_leave(thread, now);
    else if (scope->stage == PRB_TRACE_COLLECTIVE)
        prb_torch_move(thread, PRB_PHASE_COMM_WAIT, now - scope->begin, now);
}

static uintptr_t object_of(const struct scope *scope, const char *name)
{
    if (scope->stage == PRB_TRACE_COLLECTIVE)
        return prb_torch_label_next(scope->label);
    bool updates = scope->stage == PRB_TRACE_OPTIMIZER || scope->stage == PRB_TRACE_ZERO_GRAD;
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
    scope->label = name ? prb_torch_label(name, strnlen(name, PRB_TORCH_LABEL_MAX)) : 0;
    scope->stage = prb_torch_label_stage(scope->label);
    scope->arming = thread->arming;
    scope->depth = thread->depth;
    scope->tid = thread->tid;
    scope->begin = prb_clock_ns();
    scope->object = object_of(scope, name);
    enter(thread, scope);
    if (scope->stage == PRB_TRACE_COLLECTIVE)
        prb_torch_collective_begins(scope->begin);
    else if (prb_torch_label_reduces(scope->label))
        prb_torch_reducer_called();
    scope->step = prb_torch_step_of(false);
    scope->number = prb_torch_number(thread, scope->step);
    thread->scopes++;
    atomic_store_explicit(&scope->function, function, memory_order_release);
}

static void record_scope(const struct prb_torch_event *event)
{
    if (event->stage == PRB_TRACE_SCOPE &&
        !atomic_load_explicit(&prb_torch.sampled, memory_order_relaxed))
        return;
    prb_torch_record(event);
    const char *users = prb_torch_label_users(event->label);
    if (users && atomic_load_explicit(&prb_torch.spans, memory_order_relaxed))
        prb_torch_record_span(event, users);
}

static void end_scope(const void *function)
{
    struct scope *found = find_scope(function);
    if (!found)
        return;
    struct scope scope = *found;
    atomic_store_explicit(&found->function, NULL, memory_order_release);
    struct prb_torch_thread *thread =
        atomic_load_explicit(&prb_torch.on, memory_order_acquire) ? prb_torch_thread() : NULL;
    if (!thread || thread->arming != scope.arming)
        return;
    uint64_t now = prb_clock_ns();
    bool here = thread->tid == scope.tid;
    if (here)
        leave(thread, &scope, now);
    else if (scope.stage == PRB_TRACE_COLLECTIVE)
        prb_torch_collective_ends(scope.begin, now);
    const struct prb_torch_event event = {
        .begin = scope.begin,
        .end = now,
        .stage = scope.stage,
        .object = scope.object,
        .label = scope.label,
        .depth = scope.depth,
        .async = !here,
        .step = scope.stage == PRB_TRACE_OPTIMIZER ? prb_torch_step_of(true) : scope.step,
        .number = scope.number,
        .tid = scope.tid,
    };
    record_scope(&event);
    if (here && scope.stage == PRB_TRACE_OPTIMIZER)
        prb_torch_optimizer_ends(thread, now, scope.object, scope.label);
    if (here && prb_torch_ends_label(scope.label))
        prb_torch_step_ends(thread, now, false);
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
