/*
 * The mechanism "frame evaluation" without the rest of the probe: a module that an interpreter
 * loads by ctypes, whose prb_debug_happened() counts, calls a Python function or parks, as the test
 * says.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "inject/probe/debug/evaluation/evaluation.h"

#define EXPORT __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* only ctypes calls them */

static const struct prb_py_api *py;
static struct prb_py *callback;
static __thread bool inside;
static unsigned counts[128];

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;
    unsigned parked;
} parking = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void park(void)
{
    void *state = py->PyEval_SaveThread();
    pthread_mutex_lock(&parking.lock);
    parking.parked++;
    while (parking.closed)
        pthread_cond_wait(&parking.changed, &parking.lock);
    parking.parked--;
    pthread_mutex_unlock(&parking.lock);
    py->PyEval_RestoreThread(state);
}

static struct prb_py *number(unsigned long long value)
{
    return py->PyLong_FromUnsignedLongLong(value);
}

static bool call_back(const struct prb_debug_place *place)
{
    struct prb_py *value = place->value ? place->value : py->none;
    PRB_AUTO(prb_py)
    struct prb_py *event = number(place->event), *planted = number(place->planted),
                  *line = number((unsigned)place->line);
    PRB_AUTO(prb_py)
    struct prb_py *arguments =
        py->PyTuple_Pack(6, event, place->frame, place->code, line, value, planted);
    inside = true;
    PRB_AUTO(prb_py) struct prb_py *result = py->PyObject_CallObject(callback, arguments);
    inside = false;
    return result;
}

bool prb_py_is_inside(void) { return inside; }

bool prb_debug_happened(const struct prb_debug_place *place)
{
    if (inside)
        return true;
    counts[place->event]++;
    if (parking.closed)
        park();
    return !callback || call_back(place);
}

EXPORT const char *evaluation_begin(void)
{
    static struct prb_error err;
    py = prb_py_api(&err);
    bool ok = py && prb_debug_evaluation.usable(py, &err) && prb_debug_evaluation.begin(py, &err);
    return ok ? NULL : err.text;
}

EXPORT void evaluation_end(void) { prb_debug_evaluation.end(py); }
EXPORT void evaluation_forked(void) { prb_debug_evaluation.forked(); }

EXPORT int evaluation_plant(struct prb_py *code, const int *lines, size_t count)
{
    return prb_debug_evaluation.plant(py, code, lines, count);
}

EXPORT int evaluation_new_code(int on) { return prb_debug_evaluation.watch_new_code(py, on); }

EXPORT int evaluation_exceptions(unsigned events)
{
    return prb_debug_evaluation.watch_exceptions(py, events);
}

EXPORT int evaluation_step(struct prb_py *code, unsigned events)
{
    return prb_debug_evaluation.step(py, code, events);
}

EXPORT int evaluation_gate(int armed)
{
    pthread_mutex_lock(&parking.lock);
    parking.closed = armed;
    pthread_cond_broadcast(&parking.changed);
    pthread_mutex_unlock(&parking.lock);
    return prb_debug_evaluation.gate(py, armed);
}

EXPORT unsigned evaluation_parked(void) { return parking.parked; }
EXPORT void evaluation_inside(int now) { inside = now; }
EXPORT unsigned evaluation_count(unsigned event) { return counts[event]; }
EXPORT void evaluation_clear(void) { memset(counts, 0, sizeof counts); }

EXPORT void evaluation_callback(struct prb_py *function)
{
    py->Py_IncRef(function);
    prb_py_drop(callback);
    callback = function;
    if (function == py->none) {
        prb_py_drop(function);
        callback = NULL;
    }
}

/* ---- what the interpreter holds of us: the evaluator, trace functions, their count ---- */

EXPORT void *evaluation_slot(void)
{
    return prb_evaluation_word(prb_evaluation.interp,
                               PRB_OFF(&prb_evaluation.layout, interp, eval_frame));
}

EXPORT unsigned evaluation_traced(void)
{
    unsigned traced = 0;
    for (char *thread = prb_evaluation.first_thread(prb_evaluation.interp); thread;
         thread = prb_evaluation.next_thread(thread))
        traced += prb_evaluation_word(thread, prb_evaluation.tracefunc) != NULL;
    return traced;
}

EXPORT int evaluation_possible(void) /* -1: not to be known */
{
    const struct prb_layout *layout = &prb_evaluation.layout;
    int count = -1;
    if (PRB_HAS(layout, runtime, tracing_possible))
        memcpy(&count, prb_evaluation.runtime + PRB_OFF(layout, runtime, tracing_possible), 4);
    else if (PRB_HAS(layout, interp, tracing_possible))
        memcpy(&count, prb_evaluation.interp + PRB_OFF(layout, interp, tracing_possible), 4);
    return count;
}

static int flag_at(const char *at, int32_t offset)
{
    unsigned char byte;
    memcpy(&byte, at + offset, sizeof byte);
    return byte;
}

/* All that is ours to change, of the interpreter and of each thread: evaluator, functions, flags of
 * each call of the interpreter that is under way. */
EXPORT const char *evaluation_fields(void)
{
    static char text[1 << 16];
    const struct prb_layout *layout = &prb_evaluation.layout;
    int at =
        snprintf(text, sizeof text, "evaluator %p, %d\n", evaluation_slot(), evaluation_possible());
    for (char *thread = prb_evaluation.first_thread(prb_evaluation.interp);
         thread && at < (int)sizeof text; thread = prb_evaluation.next_thread(thread)) {
        at += snprintf(text + at, sizeof text - (size_t)at, "%p: %p %p %p %d", (void *)thread,
                       (void *)prb_evaluation_word(thread, prb_evaluation.tracefunc),
                       (void *)prb_evaluation_word(thread, PRB_OFF(layout, thread, traceobj)),
                       (void *)prb_evaluation_word(thread, PRB_OFF(layout, thread, profilefunc)),
                       prb_evaluation_tracing(thread));
        bool here = PRB_HAS(layout, thread, use_tracing);
        if (here && at < (int)sizeof text)
            at += snprintf(text + at, sizeof text - (size_t)at, " %d",
                           flag_at(thread, PRB_OFF(layout, thread, use_tracing)));
        const char *record =
            here ? NULL : prb_evaluation_word(thread, PRB_OFF(layout, thread, cframe));
        while (record && at < (int)sizeof text) {
            at += snprintf(text + at, sizeof text - (size_t)at, " %d",
                           flag_at(record, PRB_OFF(layout, cframe, use_tracing)));
            /* The one in the thread's state is the last: 3.10 leaves its previous unset. */
            bool last = record >= thread && record < thread + PRB_OFF(layout, thread, size);
            record = last ? NULL : prb_evaluation_word(record, PRB_OFF(layout, cframe, previous));
        }
        if (at < (int)sizeof text)
            at += snprintf(text + at, sizeof text - (size_t)at, "\n");
    }
    return text;
}

/* ---- another evaluator, which keeps the one before as TorchDynamo does ---- */

static void *foreign_before;
static unsigned foreign_calls;

static void put_slot(const void *evaluator)
{
    memcpy(prb_evaluation.interp + PRB_OFF(&prb_evaluation.layout, interp, eval_frame), &evaluator,
           sizeof evaluator);
}

static const void *foreign_next(void)
{
    foreign_calls++;
    return foreign_before ? foreign_before : prb_evaluation.default_evaluator;
}

static struct prb_py *foreign_frame(void *frame, int throw)
{
    return ((struct prb_py * (*)(void *, int))(uintptr_t)foreign_next())(frame, throw);
}

static struct prb_py *foreign_in_thread(void *thread, void *frame, int throw)
{
    return ((struct prb_py * (*)(void *, void *, int))(uintptr_t)foreign_next())(thread, frame,
                                                                                 throw);
}

EXPORT void evaluation_foreign(int on)
{
    void *ours = PRB_IS(&prb_evaluation.layout, evaluator, FRAME)
                     ? (void *)(uintptr_t)foreign_frame
                     : (void *)(uintptr_t)foreign_in_thread;
    void *now = evaluation_slot();
    if (on && now != ours) {
        foreign_before = now;
        put_slot(ours);
    } else if (!on && now != foreign_before) {
        put_slot(foreign_before);
        foreign_before = NULL;
    }
}

EXPORT unsigned evaluation_foreign_calls(void) { return foreign_calls; }

/* ---- a thread that is not Python's ---- */

static bool native_stop;

static void *native(void *call)
{
    while (!__atomic_load_n(&native_stop, __ATOMIC_ACQUIRE))
        ((void (*)(void))(uintptr_t)call)();
    return NULL;
}

static pthread_t native_thread;

EXPORT void evaluation_native(void *call)
{
    native_stop = false;
    if (pthread_create(&native_thread, NULL, native, call))
        abort();
}

EXPORT void evaluation_native_stop(void)
{
    __atomic_store_n(&native_stop, true, __ATOMIC_RELEASE);
    void *state = py->PyEval_SaveThread();
    pthread_join(native_thread, NULL);
    py->PyEval_RestoreThread(state);
}
