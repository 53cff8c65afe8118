/* The connection of a client: it sends and receives messages and waits for one request at a time
 * (control.h). */
#include "inject/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "inject/client/ask.h"
#include "inject/client/find.h"

#define READ_AT_ONCE (64u << 10)
#define SEND_MS 10000 /* a probe that accepts nothing for so long hangs */
#define GREETING_MS 3000
#define POLL_MS 50            /* how often cancelled is asked */
#define CANCEL_NS 5000000000u /* after this a cancelled request is given up */

struct prb_control {
    int fd;
    pid_t pid;
    uint32_t last; /* request number */
    struct prb_buf in;
    size_t used; /* bytes of in that were handled */
};

static bool hung_up(struct prb_error *err)
{
    return prb_fail(err, PRB_GONE,
                    "the probe has gone: the process ended, or the probe was detached");
}

bool prb_control_send(int to, const struct prb_buf *message, struct prb_error *err)
{
    size_t sent = 0;
    while (sent < message->len) {
        ssize_t n =
            send(to, message->data + sent, message->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        struct pollfd fd = {.fd = to, .events = POLLOUT};
        if (n >= 0)
            sent += (size_t)n;
        else if (errno == EPIPE || errno == ECONNRESET)
            return true; /* what it sent before it hung up is read next */
        else if (errno != EAGAIN && errno != EINTR)
            return prb_fail_sys(err, errno, "sending to the probe");
        else if (poll(&fd, 1, SEND_MS) == 0)
            return prb_fail(err, PRB_TIMEOUT,
                            "the probe accepts no message: the process may be stopped");
    }
    return true;
}

enum got { GOT, GOT_NOTHING, GOT_FAILED };

/* The next message of any request; valid until the next call. */
static enum got receive(struct prb_control *control, int wait_ms, struct prb_message *out,
                        struct prb_error *err)
{
    struct prb_buf *in = &control->in;
    if (control->used)
        memmove(in->data, in->data + control->used, in->len - control->used);
    in->len -= control->used;
    control->used = 0;
    for (;;) {
        enum prb_taken taken =
            prb_message_take((const uint8_t *)in->data, in->len, out, &control->used);
        if (taken == PRB_TAKEN)
            return GOT;
        control->used = 0;
        if (taken == PRB_TAKEN_MALFORMED) {
            prb_fail(err, PRB_CORRUPT, "the probe's answer cannot be parsed");
            return GOT_FAILED;
        }
        struct pollfd fd = {.fd = control->fd, .events = POLLIN};
        int ready = poll(&fd, 1, wait_ms);
        if (ready == 0 || (ready < 0 && errno == EINTR))
            return GOT_NOTHING;
        char *to = prb_buf_reserve(in, READ_AT_ONCE);
        ssize_t n = to ? recv(control->fd, to, READ_AT_ONCE, 0) : -1;
        if (n < 0 && to && errno == EINTR)
            continue;
        if (n <= 0) {
            hung_up(err);
            return GOT_FAILED;
        }
        in->len += (size_t)n;
    }
}

static bool take_failure(const struct prb_message *message, struct prb_error *err)
{
    uint64_t code = PRB_IO;
    char text[sizeof err->text], remedy[sizeof err->remedy];
    prb_message_number(message, PRB_FLD_CODE, &code);
    prb_message_text_into(message, PRB_FLD_TEXT, text, sizeof text);
    prb_message_text_into(message, PRB_FLD_REMEDY, remedy, sizeof remedy);
    prb_fail(err, code > PRB_OK && code <= PRB_INTERNAL ? (enum prb_code)code : PRB_IO, "%s", text);
    return *remedy ? prb_error_remedy(err, "%s", remedy) : false;
}

static bool send_cancel(struct prb_control *control, uint32_t request, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0}, message = {0};
    prb_fields_number(&fields, PRB_FLD_REQUEST, request);
    prb_message_add(&message, PRB_MSG_CANCEL, ++control->last, &fields);
    return prb_buf_ok(&message) ? prb_control_send(control->fd, &message, err) : prb_nomem(err);
}

/* Cancel or give up when it is time; *wait_ms_out: how long to wait next.  False: give up. */
static bool check_time(struct prb_control *control, const struct prb_ask *ask, uint32_t request,
                       uint64_t *give_up, bool *cancelled, int *wait_ms_out, struct prb_error *err)
{
    uint64_t now = prb_clock_ns();
    if (*give_up && now >= *give_up)
        return prb_fail(err, PRB_TIMEOUT,
                        *cancelled ? "interrupted, but the target does not stop"
                                   : "the probe does not answer: the process may be stopped");
    if (!*cancelled && (ask->stop || (ask->cancelled && ask->cancelled(ask->context)))) {
        *cancelled = true;
        *give_up = now + CANCEL_NS;
        if (!send_cancel(control, request, err))
            return false;
    }
    uint64_t left = *give_up ? (*give_up - now) / 1000000 + 1 : 0;
    *wait_ms_out = *give_up ? (int)left : -1;
    if (ask->cancelled && !*cancelled && (!*give_up || left > POLL_MS))
        *wait_ms_out = POLL_MS;
    return true;
}

static bool wait_for_end(struct prb_control *control, uint32_t request, struct prb_ask *ask,
                         struct prb_message *end_out, struct prb_error *err)
{
    uint64_t give_up = ask->wait_ms ? prb_clock_ns() + (uint64_t)ask->wait_ms * 1000000 : 0;
    bool cancelled = false;
    for (;;) {
        struct prb_message message;
        int wait_ms = -1;
        if (!check_time(control, ask, request, &give_up, &cancelled, &wait_ms, err))
            return false;
        enum got got = receive(control, wait_ms, &message, err);
        if (got == GOT_FAILED)
            return false;
        if (got == GOT_NOTHING)
            continue;
        if (message.type == PRB_MSG_FAILED && (message.request == request || message.request == 0))
            return take_failure(&message, err);
        if (message.type < PRB_MSG_PART)
            return prb_fail(err, PRB_CORRUPT, "the probe's answer cannot be parsed");
        if (message.request != request) /* of a request that was given up */
            continue;
        if (message.type == PRB_MSG_PART && ask->part && !ask->part(ask->context, &message))
            ask->stop = true;
        if (message.type == PRB_MSG_END) {
            *end_out = message;
            return true;
        }
    }
}

bool prb_control_ask(struct prb_control *control, enum prb_message_type type,
                     const struct prb_buf *fields, struct prb_ask *ask, struct prb_message *end_out,
                     struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf message = {0};
    uint32_t request = ++control->last;
    if (fields && fields->len > PRB_MESSAGE_MAX)
        return prb_fail(err, PRB_USAGE, "the request is larger than %u MiB", PRB_MESSAGE_MAX >> 20);
    prb_message_add(&message, type, request, fields);
    if (!prb_buf_ok(&message))
        return prb_nomem(err);
    return prb_control_send(control->fd, &message, err) &&
           wait_for_end(control, request, ask, end_out, err);
}

static bool greet(struct prb_control *control, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    struct prb_ask ask = {.wait_ms = GREETING_MS};
    struct prb_message end;
    prb_fields_number(&fields, PRB_FLD_VERSION, PRB_PROTOCOL_VERSION);
    return prb_control_ask(control, PRB_MSG_HELLO, &fields, &ask, &end, err);
}

static struct prb_control *begin(int fd, pid_t pid, struct prb_error *err)
{
    struct prb_control *control = calloc(1, sizeof *control);
    if (!control) {
        close(fd);
        return PRB_NULL(prb_nomem(err));
    }
    control->fd = fd;
    control->pid = pid;
    if (greet(control, err))
        return control;
    prb_control_close(control);
    return NULL;
}

struct prb_control *prb_control_open(pid_t pid, struct prb_error *err)
{
    int fd = prb_control_connect(pid, err);
    return fd < 0 ? NULL : begin(fd, pid, err);
}

struct prb_control *prb_control_open_path(const char *path, struct prb_error *err)
{
    pid_t pid;
    int fd = prb_control_connect_path(path, &pid, err);
    return fd < 0 ? NULL : begin(fd, pid, err);
}

void prb_control_close(struct prb_control *control)
{
    if (!control)
        return;
    close(control->fd);
    prb_buf_deinit(&control->in);
    free(control);
}

int prb_control_fd(const struct prb_control *control) { return control->fd; }
pid_t prb_control_pid(const struct prb_control *control) { return control->pid; }
