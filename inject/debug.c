/*
 * The client of a debug session (debug.h): one connection, a thread that reads it, and one that
 * hands events on, so that who handles an event may make a call.
 */
#include "inject/debug.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "inject/control.h"
#include "inject/control_ask.h"
#include "inject/probe/libc.h"

#define READ_AT_ONCE (64u << 10)
#define SEND_MS 10000         /* the probe takes nothing for so long: it hangs */
#define BEGIN_NS 3000000000u  /* for the session to begin, the end of the last one included */
#define CLOSE_NS 1000000000u  /* for hooks to be out */
#define CANCEL_NS 5000000000u /* after which a cancelled call is waited for no more */
#define LOOK_NS 20000000u     /* how often cancelled is asked */
#define EVENTS_WAITING_MAX                                                                         \
    (64u << 20) /* bytes; then the reader waits, and the probe leaves events out */

struct waiter { /* of one request */
    struct waiter *next;
    uint32_t request;
    bool over, ok;
    char *text; /* of END */
    size_t len;
    struct prb_error err;
};

struct event {
    struct event *next;
    size_t len;
    char text[];
};

struct prb_debug {
    struct prb_control *control;
    int fd;
    struct prb_debug_options options;
    pthread_t reader, teller;
    bool reads, tells; /* the threads run */
    pthread_mutex_t sending;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    uint32_t last;    /* request number */
    uint32_t session; /* DEBUG's */
    struct waiter *waiters;
    bool began, over, closing;
    struct prb_error end; /* why over */
    struct event *first, **end_of_events;
    size_t waiting; /* bytes of them */
};

/* ---- sending ---- */

static bool send_all(struct prb_debug *debug, const struct prb_buf *message, struct prb_error *err)
{
    size_t sent = 0;
    while (sent < message->len) {
        ssize_t n =
            send(debug->fd, message->data + sent, message->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        struct pollfd fd = {.fd = debug->fd, .events = POLLOUT};
        if (n >= 0)
            sent += (size_t)n;
        else if (errno == EPIPE || errno == ECONNRESET)
            return true; /* the reader tells */
        else if (errno != EAGAIN && errno != EINTR)
            return prb_fail_sys(err, errno, "sending to the probe");
        else if (poll(&fd, 1, SEND_MS) == 0)
            return prb_fail(err, PRB_TIMEOUT,
                            "the probe takes no message: the process may be stopped");
    }
    return true;
}

static bool send_request(struct prb_debug *debug, enum prb_message_type type, uint32_t request,
                         const struct prb_buf *fields, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf message = {0};
    if (fields && fields->len > PRB_MESSAGE_MAX)
        return prb_fail(err, PRB_USAGE, "the request is larger than %u MiB", PRB_MESSAGE_MAX >> 20);
    prb_message_add(&message, type, request, fields);
    if (!prb_buf_ok(&message))
        return prb_fail(err, PRB_NOMEM, "out of memory");
    pthread_mutex_lock(&debug->sending);
    bool ok = send_all(debug, &message, err);
    pthread_mutex_unlock(&debug->sending);
    return ok;
}

static void send_cancel(struct prb_debug *debug, uint32_t request)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    pthread_mutex_lock(&debug->lock);
    uint32_t number = ++debug->last;
    pthread_mutex_unlock(&debug->lock);
    prb_fields_number(&fields, PRB_FLD_REQUEST, request);
    if (prb_buf_ok(&fields))
        send_request(debug, PRB_MSG_CANCEL, number, &fields, NULL);
}

/* ---- the reader ---- */

static void take_failure(const struct prb_message *message, struct prb_error *err)
{
    uint64_t code = PRB_IO;
    prb_message_number(message, PRB_FLD_CODE, &code);
    PRB_AUTO_FREE char *text = prb_message_copy(message, PRB_FLD_TEXT);
    PRB_AUTO_FREE char *remedy = prb_message_copy(message, PRB_FLD_REMEDY);
    prb_fail(err, code > PRB_OK && code <= PRB_INTERNAL ? (enum prb_code)code : PRB_IO, "%s",
             text ? text : "");
    if (remedy && *remedy)
        prb_error_remedy(err, "%s", remedy);
}

/* With the lock: nothing more comes. */
static void set_over(struct prb_debug *debug, const struct prb_error *err)
{
    if (!debug->over)
        debug->end = *err;
    debug->over = true;
    pthread_cond_broadcast(&debug->changed);
}

static void add_event(struct prb_debug *debug, const struct prb_message *message)
{
    const char *text = "";
    size_t len = 0;
    prb_message_text(message, PRB_FLD_ITEM, &text, &len);
    if (!len) {
        debug->began = true;
        pthread_cond_broadcast(&debug->changed);
        return;
    }
    while (debug->waiting > EVENTS_WAITING_MAX && !debug->closing)
        pthread_cond_wait(&debug->changed, &debug->lock);
    struct event *event = malloc(sizeof *event + len + 1);
    if (!event)
        return;
    *event = (struct event){.len = len};
    memcpy(event->text, text, len);
    event->text[len] = '\0';
    *debug->end_of_events = event;
    debug->end_of_events = &event->next;
    debug->waiting += len;
    pthread_cond_broadcast(&debug->changed);
}

static void answer_waiter(struct prb_debug *debug, const struct prb_message *message)
{
    for (struct waiter *waiter = debug->waiters; waiter; waiter = waiter->next) {
        if (waiter->request != message->request || waiter->over)
            continue;
        const char *text = "";
        waiter->ok = message->type == PRB_MSG_END;
        if (waiter->ok && prb_message_text(message, PRB_FLD_TEXT, &text, &waiter->len))
            waiter->text = prb_message_copy(message, PRB_FLD_TEXT);
        else if (!waiter->ok)
            take_failure(message, &waiter->err);
        waiter->over = true;
        pthread_cond_broadcast(&debug->changed);
    }
}

/* False: the connection is over. */
static bool take(struct prb_debug *debug, const struct prb_message *message)
{
    struct prb_error err = {.code = PRB_GONE, .text = "the debug session has ended"};
    pthread_mutex_lock(&debug->lock);
    bool ends = message->type != PRB_MSG_PART && message->request == debug->session;
    if (message->type == PRB_MSG_PART && message->request == debug->session)
        add_event(debug, message);
    else if (message->type == PRB_MSG_FAILED && ends)
        take_failure(message, &err);
    else if (message->type != PRB_MSG_PART)
        answer_waiter(debug, message);
    if (ends)
        set_over(debug, &err);
    pthread_mutex_unlock(&debug->lock);
    return !ends;
}

/* All whole messages of in; false: no more can come. */
static bool take_all(struct prb_debug *debug, struct prb_buf *in)
{
    struct prb_message message;
    size_t at = 0, used;
    enum prb_taken taken = PRB_TAKEN;
    bool goes_on = true;
    while (goes_on && (taken = prb_message_take((const uint8_t *)in->data + at, in->len - at,
                                                &message, &used)) == PRB_TAKEN) {
        goes_on = take(debug, &message);
        at += used;
    }
    memmove(in->data, in->data + at, in->len - at);
    in->len -= at;
    return goes_on && taken != PRB_TAKEN_MALFORMED;
}

static void *read_all(void *context)
{
    struct prb_debug *debug = context;
    PRB_AUTO(prb_buf) struct prb_buf in = {0};
    struct prb_error err = {.code = PRB_GONE,
                            .text = "the probe has gone: the process ended, or it was detached"};
    for (bool goes_on = true; goes_on;) {
        char *to = prb_buf_reserve(&in, READ_AT_ONCE);
        ssize_t n = to ? recv(debug->fd, to, READ_AT_ONCE, 0) : 0;
        if (n < 0 && errno == EINTR)
            continue;
        goes_on = n > 0;
        if (goes_on) {
            in.len += (size_t)n;
            goes_on = take_all(debug, &in);
        }
    }
    pthread_mutex_lock(&debug->lock);
    set_over(debug, &err);
    pthread_mutex_unlock(&debug->lock);
    return NULL;
}

/* ---- the teller ---- */

static void *tell_all(void *context)
{
    struct prb_debug *debug = context;
    bool told_end = false;
    pthread_mutex_lock(&debug->lock);
    while (!debug->closing && !told_end) {
        struct event *event = debug->first;
        if (!event && !debug->over) {
            pthread_cond_wait(&debug->changed, &debug->lock);
            continue;
        }
        if (event) {
            debug->first = event->next;
            if (!debug->first)
                debug->end_of_events = &debug->first;
            debug->waiting -= event->len;
            pthread_cond_broadcast(&debug->changed);
        }
        struct prb_error end = debug->end;
        pthread_mutex_unlock(&debug->lock);
        if (event && debug->options.event)
            debug->options.event(debug->options.context, event->text, event->len);
        else if (!event && debug->options.ended)
            debug->options.ended(debug->options.context, &end);
        told_end = !event;
        free(event);
        pthread_mutex_lock(&debug->lock);
    }
    pthread_mutex_unlock(&debug->lock);
    return NULL;
}

/* ---- waiting ---- */

/* With the lock; until: prb_now_ns. */
static void wait_until(struct prb_debug *debug, uint64_t until)
{
    struct timespec time = {.tv_sec = (time_t)(until / 1000000000u),
                            .tv_nsec = (long)(until % 1000000000u)};
    pthread_cond_timedwait(&debug->changed, &debug->lock, &time);
}

static void close_threads(struct prb_debug *debug)
{
    pthread_mutex_lock(&debug->lock);
    debug->closing = true;
    pthread_cond_broadcast(&debug->changed);
    pthread_mutex_unlock(&debug->lock);
    shutdown(debug->fd, SHUT_RDWR);
    if (debug->reads)
        pthread_join(debug->reader, NULL);
    if (debug->tells)
        pthread_join(debug->teller, NULL);
}

static void release(struct prb_debug *debug)
{
    while (debug->first) {
        struct event *event = debug->first;
        debug->first = event->next;
        free(event);
    }
    pthread_cond_destroy(&debug->changed);
    pthread_mutex_destroy(&debug->lock);
    pthread_mutex_destroy(&debug->sending);
    prb_control_close(debug->control);
    free(debug);
}

static bool begin(struct prb_debug *debug, struct prb_error *err)
{
    debug->reads = pthread_create(&debug->reader, NULL, read_all, debug) == 0;
    if (!debug->reads)
        return prb_fail(err, PRB_NOMEM, "no memory for a thread");
    if (!send_request(debug, PRB_MSG_DEBUG, debug->session, NULL, err))
        return false;
    uint64_t until = prb_now_ns() + BEGIN_NS;
    pthread_mutex_lock(&debug->lock);
    while (!debug->began && !debug->over && prb_now_ns() < until)
        wait_until(debug, until);
    bool began = debug->began, over = debug->over;
    if (!began && over && err)
        *err = debug->end;
    pthread_mutex_unlock(&debug->lock);
    if (!began)
        return !over &&
               prb_fail(err, PRB_TIMEOUT,
                        "the probe does not begin the session: the process may be stopped");
    debug->tells = pthread_create(&debug->teller, NULL, tell_all, debug) == 0;
    return debug->tells || prb_fail(err, PRB_NOMEM, "no memory for a thread");
}

struct prb_debug *prb_debug_open(pid_t pid, const struct prb_debug_options *options,
                                 struct prb_error *err)
{
    struct prb_control *control = prb_control_open(pid, err);
    if (!control)
        return NULL;
    struct prb_debug *debug = calloc(1, sizeof *debug);
    if (!debug) {
        prb_control_close(control);
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    }
    debug->control = control;
    debug->fd = prb_control_fd(control);
    debug->options = *options;
    debug->end_of_events = &debug->first;
    debug->session = debug->last = 1000; /* not a number of the control's */
    pthread_mutex_init(&debug->sending, NULL);
    pthread_mutex_init(&debug->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&debug->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
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
    send_cancel(debug, debug->session);
    uint64_t until = prb_now_ns() + CLOSE_NS;
    pthread_mutex_lock(&debug->lock);
    while (!debug->over && prb_now_ns() < until)
        wait_until(debug, until);
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

static void add_waiter(struct prb_debug *debug, struct waiter *waiter)
{
    pthread_mutex_lock(&debug->lock);
    waiter->request = ++debug->last;
    waiter->next = debug->waiters;
    debug->waiters = waiter;
    pthread_mutex_unlock(&debug->lock);
}

static void remove_waiter(struct prb_debug *debug, const struct waiter *waiter)
{
    pthread_mutex_lock(&debug->lock);
    for (struct waiter **link = &debug->waiters; *link; link = &(*link)->next)
        if (*link == waiter) {
            *link = waiter->next;
            break;
        }
    pthread_mutex_unlock(&debug->lock);
}

/* Until it is answered, cancelled for too long, or nothing more comes. */
static bool await(struct prb_debug *debug, const struct prb_debug_call *call, struct waiter *waiter,
                  struct prb_error *err)
{
    uint64_t give_up = 0;
    pthread_mutex_lock(&debug->lock);
    while (!waiter->over && !debug->over && !(give_up && prb_now_ns() >= give_up)) {
        if (give_up || call->cancelled)
            wait_until(debug, give_up ? give_up : prb_now_ns() + LOOK_NS);
        else
            pthread_cond_wait(&debug->changed, &debug->lock);
        if (waiter->over || give_up || !call->cancelled)
            continue;
        pthread_mutex_unlock(&debug->lock);
        if (call->cancelled(call->context)) {
            give_up = prb_now_ns() + CANCEL_NS;
            send_cancel(debug, waiter->request);
        }
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
        prb_fail(err, PRB_TIMEOUT, "cancelled, but the target does not stop what it does");
    return over && waiter->ok;
}

bool prb_debug_call(struct prb_debug *debug, const struct prb_debug_call *call, char **result_out,
                    size_t *len_out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    struct waiter waiter = {0};
    prb_fields_text(&fields, PRB_FLD_KEY, call->method, strlen(call->method));
    if (call->arguments)
        prb_fields_text(&fields, PRB_FLD_VALUE, call->arguments, call->arguments_len);
    if (call->thread)
        prb_fields_number(&fields, PRB_FLD_THREAD, (uint64_t)call->thread);
    add_time(&fields, PRB_FLD_GIL_TIMEOUT_MS, call->gil_timeout);
    add_time(&fields, PRB_FLD_TIMEOUT_MS, call->timeout);
    if (!prb_buf_ok(&fields))
        return prb_fail(err, PRB_NOMEM, "out of memory");
    add_waiter(debug, &waiter);
    bool ok = send_request(debug, PRB_MSG_DEBUG_CALL, waiter.request, &fields, err) &&
              await(debug, call, &waiter, err);
    remove_waiter(debug, &waiter);
    if (ok && !waiter.text)
        ok = prb_fail(err, PRB_NOMEM, "out of memory");
    if (!ok) {
        free(waiter.text);
        return false;
    }
    *result_out = waiter.text;
    *len_out = waiter.len;
    return true;
}
