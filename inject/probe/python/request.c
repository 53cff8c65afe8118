/* The requests EVAL and COMPLETE: from messages to jobs (python.h), and from what jobs tell back to
 * messages. */
#include <stdlib.h>
#include <string.h>

#include "inject/probe/part.h"
#include "inject/probe/python/eval.h"
#include "inject/probe/server/request.h"
#include "inject/probe/settings.h"

#define COMPLETE_MS 2000 /* looking up a name takes no longer unless the program's code runs */
#define ROOM_WAIT 1.0    /* s, then the request is looked at again */

static bool on_output(void *context, int stream, const char *text, size_t len)
{
    struct prb_request *request = context;
    enum prb_sent sent;
    while ((sent = prb_request_output(request, (unsigned)stream, text, len)) == PRB_SENT_FULL)
        if (!prb_request_wait_room(request, ROOM_WAIT) && !prb_request_open(request))
            return false;
    return sent == PRB_SENT;
}

static void on_failed(void *context, const struct prb_error *err)
{
    prb_request_fail(context, err);
    prb_request_release(context);
}

static void on_evaluated(void *context, const struct prb_python_result *result)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    prb_fields_number(&fields, PRB_FLD_RAISED, result->raised);
    prb_fields_number(&fields, PRB_FLD_INCOMPLETE, result->incomplete);
    prb_fields_number(&fields, PRB_FLD_NONE, result->none);
    prb_fields_number(&fields, PRB_FLD_MICROSECONDS, result->microseconds);
    prb_fields_text(&fields, PRB_FLD_TEXT, result->text, result->len);
    prb_request_end(context, &fields);
    prb_request_release(context);
}

/* Each line of the text is an item. */
static void on_completed(void *context, const struct prb_python_result *result)
{
    const char *end = result->text + result->len;
    enum prb_sent sent = PRB_SENT;
    for (const char *line = result->text;
         !result->raised && line < end && sent != PRB_SENT_CLOSED;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((stop ? stop : end) - line);
        while ((sent = prb_request_item(context, line, len)) == PRB_SENT_FULL &&
               (prb_request_wait_room(context, ROOM_WAIT) || prb_request_open(context)))
            continue;
        line += len + 1;
    }
    prb_request_end(context, NULL);
    prb_request_release(context);
}

static void release_job(void *data) { prb_python_release(data); }

/* Numbers that a message leaves out stay 0; those too large are as large as can be. */
static uint32_t number(const struct prb_message *message, enum prb_message_field key)
{
    uint64_t value = 0;
    prb_message_number(message, key, &value);
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* What a message asks for; NULL: no memory. */
static struct prb_eval *take(const struct prb_message *message, enum prb_eval_how mode)
{
    const char *source = "", *text;
    size_t len = 0, name_len;
    char *name = NULL;
    prb_message_text(message, PRB_FLD_SOURCE, &source, &len);
    if (prb_message_text(message, PRB_FLD_NAMESPACE, &text, &name_len) &&
        !(name = prb_message_copy(message, PRB_FLD_NAMESPACE)))
        return NULL;
    struct prb_eval *eval = prb_eval_new(source, len, name);
    if (!eval)
        return NULL;
    eval->mode = mode;
    prb_message_number(message, PRB_FLD_THREAD, &eval->thread);
    eval->frame = number(message, PRB_FLD_FRAME);
    if (prb_message_text(message, PRB_FLD_FUNCTION, &text, &name_len))
        eval->function = prb_message_copy(message, PRB_FLD_FUNCTION);
    eval->cursor = number(message, PRB_FLD_CURSOR);
    return eval;
}

static void begin(struct prb_request *request, const struct prb_message *message,
                  enum prb_eval_how mode, uint32_t time_ms,
                  void (*done)(void *context, const struct prb_python_result *result))
{
    struct prb_python_request asked = {
        .work = &prb_eval_work,
        .data = take(message, mode),
        .gil_ms = number(message, PRB_FLD_GIL_TIMEOUT_MS),
        .time_ms = time_ms,
    };
    if (!asked.gil_ms)
        asked.gil_ms = (uint32_t)(prb_settings_number("probing.eval.gil_timeout", 1) * 1000);
    struct prb_python_sink sink = {on_output, done, on_failed, prb_request_hold(request)};
    struct prb_error err = {.code = PRB_NOMEM, .text = "no memory for the request"};
    struct prb_python_job *job = asked.data ? prb_python_start(&asked, &sink, &err) : NULL;
    if (job)
        prb_request_set_data(request, job, release_job);
    else
        on_failed(request, &err);
}

static void begin_eval(struct prb_request *request, const struct prb_message *message)
{
    bool single = number(message, PRB_FLD_MODE) == 1; /* PRB_EVAL_SINGLE of control.h */
    uint32_t time_ms = number(message, PRB_FLD_TIMEOUT_MS);
    if (!time_ms)
        time_ms = (uint32_t)(prb_settings_number("probing.eval.timeout", 0) * 1000);
    begin(request, message, single ? PRB_EVAL_INTERACTIVE : PRB_EVAL_ALL, time_ms, on_evaluated);
}

static void begin_complete(struct prb_request *request, const struct prb_message *message)
{
    begin(request, message, PRB_EVAL_COMPLETE, COMPLETE_MS, on_completed);
}

static void cancel(struct prb_request *request, enum prb_cancel why)
{
    (void)why; /* the job ends the same way, and its answer is dropped when nobody waits */
    struct prb_python_job *job = prb_request_data(request);
    if (job)
        prb_python_cancel(job);
}

static const struct prb_request_kind eval_kind = {
    .type = PRB_MSG_EVAL,
    .name = "evaluate",
    .logged = true,
    .runs_python = true,
    .begin = begin_eval,
    .cancel = cancel,
};

static const struct prb_request_kind complete_kind = {
    .type = PRB_MSG_COMPLETE,
    .name = "complete",
    .runs_python = true,
    .begin = begin_complete,
    .cancel = cancel,
};

/* ---- the part ---- */

#define DETACH_MS 1000 /* for the GIL, and for code that still runs */

static void status(struct prb_buf *fields)
{
    prb_fields_number(fields, PRB_FLD_EVALUATIONS, prb_python_running());
}

static void end(void) { prb_python_detach(DETACH_MS, NULL); }

const struct prb_probe_part prb_probe_part_python = {
    .name = "python",
    .requests = (const struct prb_request_kind *const[]){&eval_kind, &complete_kind, NULL},
    .end = end,
    .forked = prb_python_forked,
    .status = status,
};
