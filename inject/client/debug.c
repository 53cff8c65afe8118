/*
 * The client of a debug session (debug.h): one connection, a thread that reads it, and one that
 * dispatches events (debug_link.h); how it begins and ends, and its calls.
 */
#include "inject/debug.h"

#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "inject/bytecode/bytecode.h"
#include "inject/client/ask.h"
#include "inject/client/debug_link.h"
#include "proc/proc.h"

#define BEGIN_NS 3000000000u   /* for the session to begin, and the last one to end */
#define CLOSE_NS 1000000000u   /* for hooks to be removed */
#define CANCEL_NS 5000000000u  /* after this a cancelled call is given up */
#define POLL_NS 20000000u      /* how often cancelled is asked */
#define STOPPED_NS 1000000000u /* how often we check whether the process is stopped */
#define STOPPED_MAX 2          /* checks; our own stops of a thread take microseconds */

/* ---- waiting ---- */

/* With the lock; until: prb_clock_ns. */
static void wait_until(struct prb_debug *debug, pthread_cond_t *changed, uint64_t until)
{
    struct timespec time = prb_clock_timespec_ns(until);
    pthread_cond_timedwait(changed, &debug->lock, &time);
}

static void close_threads(struct prb_debug *debug)
{
    pthread_mutex_lock(&debug->lock);
    debug->closing = true;
    pthread_cond_broadcast(&debug->events);
    pthread_mutex_unlock(&debug->lock);
    shutdown(debug->fd, SHUT_RDWR);
    if (debug->reads)
        pthread_join(debug->reader, NULL);
    if (debug->dispatches)
        pthread_join(debug->dispatcher, NULL);
}

static void release(struct prb_debug *debug)
{
    while (debug->first) {
        struct prb_debug_item *event = debug->first;
        debug->first = event->next;
        free(event);
    }
    pthread_cond_destroy(&debug->changed);
    pthread_cond_destroy(&debug->events);
    pthread_mutex_destroy(&debug->lock);
    pthread_mutex_destroy(&debug->sending);
    prb_control_close(debug->control);
    free(debug);
}

static void add_bytecode(struct prb_debug *debug, struct prb_buf *fields)
{
    struct prb_bytecode *bytecode = PRB_STEAL(debug->options.bytecode);
    const struct prb_buf *blob = bytecode ? prb_bytecode_wait(bytecode) : NULL;
    if (blob && blob->len)
        prb_fields_text(fields, PRB_FLD_BYTECODE, blob->data, blob->len);
}

static bool begin(struct prb_debug *debug, struct prb_error *err)
{
    debug->reads = pthread_create(&debug->reader, NULL, prb_debug_read, debug) == 0;
    if (!debug->reads)
        return prb_nomem(err);
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    add_bytecode(debug, &fields);
    if (!prb_debug_send(debug, PRB_MSG_DEBUG, debug->session, &fields, err))
        return false;
    uint64_t until = prb_clock_ns() + BEGIN_NS;
    pthread_mutex_lock(&debug->lock);
    while (!debug->began && !debug->over && prb_clock_ns() < until)
        wait_until(debug, &debug->changed, until);
    bool began = debug->began, over = debug->over;
    if (!began && over && err)
        *err = debug->end;
    pthread_mutex_unlock(&debug->lock);
    if (!began)
        return !over && prb_fail(err, PRB_TIMEOUT,
                                 "the probe did not start the session: the process may be stopped");
    debug->dispatches = pthread_create(&debug->dispatcher, NULL, prb_debug_dispatch, debug) == 0;
    return debug->dispatches || prb_nomem(err);
}

struct prb_debug *prb_debug_open(pid_t pid, const struct prb_debug_options *options,
                                 struct prb_error *err)
{
    struct prb_control *control = options->control ? options->control : prb_control_open(pid, err);
    if (!control)
        return NULL;
    struct prb_debug *debug = calloc(1, sizeof *debug);
    if (!debug) {
        prb_control_close(control);
        return PRB_NULL(prb_nomem(err));
    }
    debug->control = control;
    debug->pid = pid;
    debug->fd = prb_control_fd(control);
    debug->options = *options;
    debug->end_of_events = &debug->first;
    debug->session = debug->last = 1000; /* not one of struct prb_control's numbers */
    pthread_mutex_init(&debug->sending, NULL);
    pthread_mutex_init(&debug->lock, NULL);
    prb_clock_cond_init(&debug->changed);
    prb_clock_cond_init(&debug->events);
    if (begin(debug, err))
        return debug;
    close_threads(debug);
    release(debug);
    return NULL;
}

void prb_debug_close(struct prb_debug *debug)
{
    if (!debug)
        return;
    prb_debug_send_cancel(debug, debug->session);
    uint64_t until = prb_clock_ns() + CLOSE_NS;
    pthread_mutex_lock(&debug->lock);
    while (!debug->over && prb_clock_ns() < until)
        wait_until(debug, &debug->changed, until);
    pthread_mutex_unlock(&debug->lock);
    close_threads(debug);
    release(debug);
}

/* ---- calls ---- */

static void add_time(struct prb_buf *fields, enum prb_message_field key, double seconds)
{
    if (seconds > 0)
        prb_fields_number(fields, key,
                          seconds < 1e9 ? (uint64_t)(seconds * 1000 + 0.999) : (uint64_t)1e12);
}

static void add_waiter(struct prb_debug *debug, struct prb_debug_waiter *waiter)
{
    prb_clock_cond_init(&waiter->changed);
    pthread_mutex_lock(&debug->lock);
    waiter->request = ++debug->last;
    waiter->next = debug->waiters;
    debug->waiters = waiter;
    pthread_mutex_unlock(&debug->lock);
}

static void remove_waiter(struct prb_debug *debug, struct prb_debug_waiter *waiter)
{
    pthread_mutex_lock(&debug->lock);
    for (struct prb_debug_waiter **link = &debug->waiters; *link; link = &(*link)->next)
        if (*link == waiter) {
            *link = waiter->next;
            break;
        }
    pthread_mutex_unlock(&debug->lock);
    pthread_cond_destroy(&waiter->changed);
}

/* When to give up waiting for an answer. */
struct patience {
    uint64_t give_up; /* prb_clock_ns; 0: not yet */
    uint64_t next_check;
    unsigned stopped;
};

/* By SIGSTOP, job control or a tracer: then it cannot answer, and cannot say why. */
static bool is_stopped(pid_t pid)
{
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(pid, NULL);
    struct prb_task first = {.tid = pid};
    return proc && prb_proc_task_read(proc, &first) && (first.state == 'T' || first.state == 't');
}

/* Without the lock. */
static void lose_patience(struct prb_debug *debug, const struct prb_debug_call *call,
                          struct patience *patience)
{
    uint64_t now = prb_clock_ns();
    if (call->cancelled(call->context)) {
        patience->give_up = now + CANCEL_NS;
    } else if (now >= patience->next_check) {
        patience->next_check = now + STOPPED_NS;
        patience->stopped = is_stopped(debug->pid) ? patience->stopped + 1 : 0;
        if (patience->stopped == STOPPED_MAX)
            patience->give_up = now;
    }
}

static bool fail_unanswered(const struct prb_debug *debug, const struct patience *patience,
                            struct prb_error *err)
{
    if (patience->stopped < STOPPED_MAX)
        return prb_fail(err, PRB_TIMEOUT, "cancelled, but the target does not stop");
    prb_fail(err, PRB_TIMEOUT,
             "process %d is stopped (SIGSTOP, or another debugger) and cannot answer",
             (int)debug->pid);
    return prb_error_remedy(err, "`kill -CONT %d` continues it", (int)debug->pid);
}

/* Until the answer or the end of the session; gives up when the process is stopped, or does not
 * react to a cancel. */
static bool await(struct prb_debug *debug, const struct prb_debug_call *call,
                  struct prb_debug_waiter *waiter, struct prb_error *err)
{
    struct patience patience = {.next_check = prb_clock_ns() + STOPPED_NS};
    pthread_mutex_lock(&debug->lock);
    while (!waiter->over && !debug->over &&
           !(patience.give_up && prb_clock_ns() >= patience.give_up)) {
        if (patience.give_up || call->cancelled)
            wait_until(debug, &waiter->changed,
                       patience.give_up ? patience.give_up : prb_clock_ns() + POLL_NS);
        else
            pthread_cond_wait(&waiter->changed, &debug->lock);
        if (waiter->over || patience.give_up || !call->cancelled)
            continue;
        pthread_mutex_unlock(&debug->lock);
        lose_patience(debug, call, &patience);
        if (patience.give_up)
            prb_debug_send_cancel(debug, waiter->request);
        pthread_mutex_lock(&debug->lock);
    }
    bool over = waiter->over;
    if (!over && debug->over && err)
        *err = debug->end;
    bool gone = debug->over;
    pthread_mutex_unlock(&debug->lock);
    if (over && !waiter->ok && err)
        *err = waiter->err;
    if (!over && !gone)
        return fail_unanswered(debug, &patience, err);
    return over && waiter->ok;
}

bool prb_debug_call(struct prb_debug *debug, const struct prb_debug_call *call, char **result_out,
                    size_t *len_out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    struct prb_debug_waiter waiter = {0};
    prb_fields_text(&fields, PRB_FLD_KEY, call->method, strlen(call->method));
    if (call->arguments)
        prb_fields_text(&fields, PRB_FLD_VALUE, call->arguments, call->arguments_len);
    if (call->thread)
        prb_fields_number(&fields, PRB_FLD_THREAD, (uint64_t)call->thread);
    add_time(&fields, PRB_FLD_GIL_TIMEOUT_MS, call->gil_timeout);
    add_time(&fields, PRB_FLD_TIMEOUT_MS, call->timeout);
    if (!prb_buf_ok(&fields))
        return prb_nomem(err);
    add_waiter(debug, &waiter);
    bool ok = prb_debug_send(debug, PRB_MSG_DEBUG_CALL, waiter.request, &fields, err) &&
              await(debug, call, &waiter, err);
    remove_waiter(debug, &waiter);
    if (ok && !waiter.text)
        ok = prb_nomem(err);
    if (!ok) {
        free(waiter.text);
        return false;
    }
    *result_out = waiter.text;
    *len_out = waiter.len;
    return true;
}
