/* The live back end: a session of the probe's debugger (inject/debug.h).  If the process has no
 * probe, it is injected. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "dap/backend/backend.h"
#include "dap/backend/frames.h"
#include "dap/backend/live/native_frames.h"
#include "inject/bytecode/bytecode.h"
#include "inject/control.h"
#include "inject/debug.h"
#include "inject/inject.h"

#define GIL_S 5.0      /* to acquire the GIL: long, since the client can cancel */
#define STACKS_MAX 256 /* cached during one stop */
#define MOVING_S 1.0   /* the stack of a thread in native code is cached: it may park */

/* A cached stack of this stop: clients ask for it in pages. */
struct stack {
    struct stack *next;
    json_int_t thread;
    json_t *answer;
    double until; /* s, monotonic; 0: the whole stop */
};

struct live {
    struct prb_dap_backend backend;
    struct prb_debug *debug;
    pid_t pid;
    pthread_mutex_t lock;          /* of what follows */
    struct prb_dap_native *native; /* opened at first use */
    bool no_native;                /* it cannot be opened, or is not wanted */
    bool all_threads;              /* also those without Python */
    struct stack *stacks;
    size_t stack_count;
    unsigned long stop; /* counts; changes whenever stacks may change */
    bool stopped;
    json_t *places; /* of threads in native code, at this stop */
    double places_until;
};

static const char *const methods[] = {
#define ANY
#define M(name, where, part) #name,
#include "inject/probe/debug/methods.def"
#undef M
#undef ANY
};

static bool live_has(const struct prb_dap_backend *backend, const char *method)
{
    (void)backend;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i], method) == 0)
            return true;
    return false;
}

static json_t *ask_agent(struct live *live, const struct prb_dap_call *call, struct prb_error *err)
{
    PRB_AUTO_FREE char *arguments =
        call->arguments ? json_dumps(call->arguments, JSON_COMPACT) : strdup("{}");
    PRB_AUTO_FREE char *text = NULL;
    size_t len;
    json_error_t why;
    if (!arguments)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    const struct prb_debug_call ask = {
        .method = call->method,
        .arguments = arguments,
        .arguments_len = strlen(arguments),
        .thread = call->thread,
        .timeout = call->timeout,
        .gil_timeout = GIL_S,
        .cancelled = call->cancelled,
        .context = call->context,
    };
    struct prb_error failure = {0};
    if (!prb_debug_call(live->debug, &ask, &text, &len, &failure)) {
        prb_explain_gil(live->pid, &failure);
        if (err)
            *err = failure;
        return NULL;
    }
    json_t *result = json_loadb(text, len, JSON_ALLOW_NUL, &why);
    if (!json_is_object(result)) {
        json_decref(result);
        return PRB_NULL(prb_fail(err, PRB_CORRUPT,
                                 "the target's answer to %s is not a JSON object: %s", call->method,
                                 why.text));
    }
    return result;
}

/* ---- native frames, read from outside ---- */

static struct prb_dap_native *native_of(struct live *live)
{
    pthread_mutex_lock(&live->lock);
    if (!live->native && !live->no_native) {
        live->native = prb_dap_native_open(live->pid, NULL);
        live->no_native = !live->native;
    }
    struct prb_dap_native *native = live->native;
    pthread_mutex_unlock(&live->lock);
    return native;
}

static json_int_t number(const json_t *arguments, const char *key)
{
    return json_integer_value(json_object_get(arguments, key));
}

/* Threads run, or another stop begins. */
static void forget_stacks(struct live *live, bool stopped)
{
    pthread_mutex_lock(&live->lock);
    live->stopped = stopped;
    for (struct stack *one; (one = live->stacks);) {
        live->stacks = one->next;
        json_decref(one->answer);
        free(one);
    }
    live->stack_count = 0;
    json_decref(live->places);
    live->places = NULL;
    live->stop++;
    pthread_mutex_unlock(&live->lock);
}

/* The cached stack of a thread, a new reference, or NULL; *stop_out: the stop it belongs to. */
static json_t *cached_stack(struct live *live, json_int_t thread, unsigned long *stop_out)
{
    json_t *found = NULL;
    pthread_mutex_lock(&live->lock);
    *stop_out = live->stop;
    for (const struct stack *one = live->stacks; one && !found; one = one->next)
        if (one->thread == thread && (one->until <= 0 || prb_clock_s() < one->until))
            found = json_incref(one->answer);
    pthread_mutex_unlock(&live->lock);
    return found;
}

static void cache_stack(struct live *live, json_int_t thread, json_t *answer, unsigned long stop)
{
    struct stack *one = calloc(1, sizeof *one);
    bool parked = json_is_true(json_object_get(answer, "parked"));
    pthread_mutex_lock(&live->lock);
    if (one && live->stop == stop && live->stack_count < STACKS_MAX) {
        *one = (struct stack){.next = live->stacks,
                              .thread = thread,
                              .answer = json_incref(answer),
                              .until = parked ? 0 : prb_clock_s() + MOVING_S};
        live->stacks = one;
        live->stack_count++;
        one = NULL;
    }
    pthread_mutex_unlock(&live->lock);
    free(one);
}

/* All frames of a thread, native ones included.  NULL without an error: the stack is too deep for
 * one answer, and the agent's frames are used as they are. */
static json_t *whole_stack(struct live *live, struct prb_dap_native *native,
                           const struct prb_dap_call *call, json_int_t thread,
                           struct prb_error *err)
{
    struct prb_dap_call every = *call;
    every.arguments = json_pack("{s:I}", "threadId", thread);
    struct prb_error why = {0};
    json_t *stack = ask_agent(live, &every, &why);
    json_decref(every.arguments);
    if (!stack && why.code == PRB_NOT_FOUND) /* a thread without Python */
        stack = json_pack("{s:[], s:i}", "stackFrames", "totalFrames", 0);
    else if (!stack && err)
        *err = why;
    if (!stack)
        return NULL;
    size_t count = json_array_size(json_object_get(stack, "stackFrames"));
    if (number(stack, "totalFrames") > (json_int_t)count) {
        json_decref(stack);
        return NULL;
    }
    bool merged = prb_dap_native_merge(native, (pid_t)thread, stack);
    if (!count && !merged) {
        json_decref(stack);
        if (err)
            *err = why;
        return NULL;
    }
    return stack;
}

static json_t *ask_stack(struct live *live, const struct prb_dap_call *call, struct prb_error *err)
{
    struct prb_dap_native *native = native_of(live);
    json_int_t thread = number(call->arguments, "threadId");
    struct prb_error why = {0};
    unsigned long stop = 0;
    if (!native)
        return ask_agent(live, call, err);
    json_t *whole = cached_stack(live, thread, &stop);
    if (!whole && (whole = whole_stack(live, native, call, thread, &why)))
        cache_stack(live, thread, whole, stop);
    if (!whole && why.code && err)
        *err = why;
    if (!whole)
        return why.code ? NULL : ask_agent(live, call, err);
    json_t *page = json_copy(whole);
    json_decref(whole);
    prb_dap_stack_page(page, number(call->arguments, "startFrame"),
                       number(call->arguments, "levels"));
    return page;
}

/* The places of this stop, a new reference; or NULL. */
static json_t *native_places(struct live *live)
{
    struct prb_dap_native *native = native_of(live);
    pthread_mutex_lock(&live->lock);
    unsigned long stop = live->stop;
    bool cached = live->places && prb_clock_s() < live->places_until;
    json_t *places = cached ? json_incref(live->places) : NULL;
    pthread_mutex_unlock(&live->lock);
    if (places || !native)
        return places;
    places = prb_dap_native_places(native, live->all_threads);
    pthread_mutex_lock(&live->lock);
    if (places && live->stopped && live->stop == stop) {
        json_decref(live->places);
        live->places = json_incref(places);
        live->places_until = prb_clock_s() + MOVING_S;
    }
    pthread_mutex_unlock(&live->lock);
    return places;
}

/* Native places only while the target is stopped: a running thread has left its place before the
 * client shows it. */
static json_t *ask_threads(struct live *live, const struct prb_dap_call *call,
                           struct prb_error *err)
{
    json_t *threads = ask_agent(live, call, err);
    pthread_mutex_lock(&live->lock);
    bool wanted = live->stopped || live->all_threads;
    pthread_mutex_unlock(&live->lock);
    json_t *places = threads && wanted ? native_places(live) : NULL;
    if (places)
        prb_dap_native_add_places(places, threads, live->all_threads);
    json_decref(places);
    return threads;
}

/* Methods that let threads run, or move one.  A setter does not change a stack. */
static bool moves(const char *method)
{
    static const char *const names[] = {"continue", "next", "step_in", "step_out", "goto", "pause"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], method) == 0)
            return true;
    return false;
}

/* The part of the configuration that the agent does not handle. */
static void take_settings(struct live *live, const json_t *settings)
{
    pthread_mutex_lock(&live->lock);
    if (json_is_false(json_object_get(settings, "showNativeFrames")))
        live->no_native = true;
    live->all_threads = json_is_true(json_object_get(settings, "showNativeThreads"));
    pthread_mutex_unlock(&live->lock);
}

static json_t *live_call(struct prb_dap_backend *backend, const struct prb_dap_call *call,
                         struct prb_error *err)
{
    struct live *live = (struct live *)backend;
    if (strcmp(call->method, "stack") == 0)
        return ask_stack(live, call, err);
    if (strcmp(call->method, "threads") == 0)
        return ask_threads(live, call, err);
    if (strcmp(call->method, "attach") == 0)
        take_settings(live, call->arguments);
    if (moves(call->method))
        forget_stacks(live, strcmp(call->method, "pause") == 0);
    return ask_agent(live, call, err);
}

static void live_close(struct prb_dap_backend *backend)
{
    struct live *live = (struct live *)backend;
    prb_debug_close(live->debug);
    prb_dap_native_close(live->native);
    forget_stacks(live, false);
    pthread_mutex_destroy(&live->lock);
    free(live);
}

static const struct prb_dap_backend_ops live_ops = {
    .name = "live",
    .has = live_has,
    .call = live_call,
    .close = live_close,
};

static void take_event(void *context, const char *text, size_t len)
{
    struct live *live = context;
    json_t *event = json_loadb(text, len, JSON_ALLOW_NUL, NULL),
           *body = json_object_get(event, "body");
    const char *name = json_string_value(json_object_get(event, "event"));
    json_t *none = json_is_object(body) ? NULL : json_object();
    if (name && (strcmp(name, "stopped") == 0 || strcmp(name, "continued") == 0))
        forget_stacks(live, strcmp(name, "stopped") == 0);
    if (name)
        live->backend.event(live->backend.context, name, none ? none : body);
    json_decref(none);
    json_decref(event);
}

static void take_end(void *context, const struct prb_error *err)
{
    struct live *live = context;
    json_t *body = json_pack("{s:s}", "reason", err ? err->text : "");
    live->backend.event(live->backend.context, "gone", body);
    json_decref(body);
}

struct prb_dap_backend *prb_dap_live_open(pid_t pid, void (*event)(void *, const char *, json_t *),
                                          void *context, struct prb_error *err)
{
    PRB_AUTO(prb_bytecode) struct prb_bytecode *bytecode = prb_bytecode_begin(pid);
    struct prb_inject_report report;
    struct prb_control *control = prb_ensure_probe(pid, &report, err);
    struct live *live = control ? calloc(1, sizeof *live) : NULL;
    if (!live) {
        prb_control_close(control);
        return control ? PRB_NULL(prb_nomem(err)) : NULL;
    }
    live->backend = (struct prb_dap_backend){.ops = &live_ops, .event = event, .context = context};
    live->pid = pid;
    pthread_mutex_init(&live->lock, NULL);
    const struct prb_debug_options options = {.event = take_event,
                                              .ended = take_end,
                                              .context = live,
                                              .control = control,
                                              .bytecode = bytecode};
    live->debug = prb_debug_open(pid, &options, err);
    if (live->debug)
        return &live->backend;
    pthread_mutex_destroy(&live->lock);
    free(live);
    return NULL;
}
