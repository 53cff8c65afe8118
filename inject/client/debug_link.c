/* What a debug session sends to the probe and receives from it: see debug_link.h. */
#include "inject/client/debug_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "inject/client/ask.h"

#define READ_AT_ONCE (64u << 10)
#define EVENTS_WAITING_MAX                                                                         \
    (64u << 20) /* bytes; beyond it the reader waits, and the probe drops events */

/* ---- sending ---- */

bool prb_debug_send(struct prb_debug *debug, enum prb_message_type type, uint32_t request,
                    const struct prb_buf *fields, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf message = {0};
    if (fields && fields->len > PRB_MESSAGE_MAX)
        return prb_fail(err, PRB_USAGE, "the request is larger than %u MiB", PRB_MESSAGE_MAX >> 20);
    prb_message_add(&message, type, request, fields);
    if (!prb_buf_ok(&message))
        return prb_nomem(err);
    pthread_mutex_lock(&debug->sending);
    bool ok = prb_control_send(debug->fd, &message, err);
    pthread_mutex_unlock(&debug->sending);
    return ok;
}

void prb_debug_send_cancel(struct prb_debug *debug, uint32_t request)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    pthread_mutex_lock(&debug->lock);
    uint32_t number = ++debug->last;
    pthread_mutex_unlock(&debug->lock);
    prb_fields_number(&fields, PRB_FLD_REQUEST, request);
    if (prb_buf_ok(&fields))
        prb_debug_send(debug, PRB_MSG_CANCEL, number, &fields, NULL);
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
    for (struct prb_debug_waiter *waiter = debug->waiters; waiter; waiter = waiter->next)
        pthread_cond_signal(&waiter->changed);
    pthread_cond_broadcast(&debug->changed);
    pthread_cond_broadcast(&debug->events);
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
        pthread_cond_wait(&debug->events, &debug->lock);
    struct prb_debug_item *event = malloc(sizeof *event + len + 1);
    if (!event)
        return;
    *event = (struct prb_debug_item){.len = len};
    memcpy(event->text, text, len);
    event->text[len] = '\0';
    *debug->end_of_events = event;
    debug->end_of_events = &event->next;
    debug->waiting += len;
    pthread_cond_broadcast(&debug->events);
}

static void answer_waiter(struct prb_debug *debug, const struct prb_message *message)
{
    for (struct prb_debug_waiter *waiter = debug->waiters; waiter; waiter = waiter->next) {
        if (waiter->request != message->request || waiter->over)
            continue;
        const char *text = "";
        waiter->ok = message->type == PRB_MSG_END;
        if (waiter->ok && prb_message_text(message, PRB_FLD_TEXT, &text, &waiter->len))
            waiter->text = prb_message_copy(message, PRB_FLD_TEXT);
        else if (!waiter->ok)
            take_failure(message, &waiter->err);
        waiter->over = true;
        pthread_cond_signal(&waiter->changed);
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

/* Handle all complete messages of in; false: no more can come. */
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

void *prb_debug_read(void *context)
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

/* ---- the dispatcher ---- */

void *prb_debug_dispatch(void *context)
{
    struct prb_debug *debug = context;
    bool told_end = false;
    pthread_mutex_lock(&debug->lock);
    while (!debug->closing && !told_end) {
        struct prb_debug_item *event = debug->first;
        if (!event && !debug->over) {
            pthread_cond_wait(&debug->events, &debug->lock);
            continue;
        }
        if (event) {
            debug->first = event->next;
            if (!debug->first)
                debug->end_of_events = &debug->first;
            debug->waiting -= event->len;
            pthread_cond_broadcast(&debug->events);
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
