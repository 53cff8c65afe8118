/*
 * One connection: bytes in, messages to their handlers, bytes out.  Nothing that a client sends or
 * leaves undone may cost more than its own connection: sends never wait, what waits to be sent is
 * bounded, and malformed bytes end it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "inject/probe/libc.h"
#include "inject/probe/log.h"
#include "inject/probe/part.h"
#include "inject/probe/python_switches.h"
#include "inject/probe/server/server.h"

#define READ_AT_ONCE (64u << 10) /* bytes; then the others' turn */
#define KEEP (16u << 10)         /* bytes of an idle client's buffers */

static const struct prb_request_kind *const kinds[] = {
#define K(name) &prb_request_##name,
#include "inject/probe/server/requests.def"
#undef K
};

struct prb_client *prb_client_new(int fd, const char *who)
{
    struct prb_client *client = calloc(1, sizeof *client);
    if (!client)
        return NULL;
    client->fd = fd;
    client->since = prb_clock_ns();
    snprintf(client->who, sizeof client->who, "%s", who);
    return client;
}

void prb_client_free(struct prb_client *client)
{
    prb_buf_deinit(&client->in);
    prb_buf_deinit(&client->out);
    free(client);
}

size_t prb_client_waiting(const struct prb_client *client)
{
    return client->out.len - client->sent;
}

void prb_client_flush(struct prb_client *client)
{
    while (!client->dead && prb_client_waiting(client)) {
        ssize_t n = send(client->fd, client->out.data + client->sent, prb_client_waiting(client),
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            if (!client->stuck)
                client->stuck = prb_clock_ns();
            return;
        }
        if (n < 0) {
            client->dead = true;
            return;
        }
        client->sent += (size_t)n;
        client->stuck = 0;
    }
    client->sent = client->out.len = 0;
    if (client->out.cap > KEEP)
        prb_buf_deinit(&client->out);
}

void prb_client_send(struct prb_client *client, enum prb_message_type type, uint32_t request,
                     const struct prb_buf *fields)
{
    prb_message_add(&client->out, type, request, fields);
    if (!prb_buf_ok(&client->out) || prb_client_waiting(client) > PRB_OUTPUT_MAX)
        client->dead = true; /* out of memory, or it does not read */
    prb_client_flush(client);
    if (client->dead || prb_client_waiting(client))
        prb_server_wake(); /* to be reaped, or for the rest */
}

void prb_client_send_failure(struct prb_client *client, uint32_t request,
                             const struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    prb_fields_number(&fields, PRB_FLD_CODE, err->code);
    prb_fields_text(&fields, PRB_FLD_TEXT, err->text, strlen(err->text));
    prb_fields_text(&fields, PRB_FLD_REMEDY, err->remedy, strlen(err->remedy));
    prb_client_send(client, PRB_MSG_FAILED, request, &fields);
}

static void answer(struct prb_client *client, uint32_t request, const struct prb_buf *fields)
{
    pthread_mutex_lock(&prb_server.lock);
    prb_client_send(client, PRB_MSG_END, request, fields);
    pthread_mutex_unlock(&prb_server.lock);
}

static void refuse(struct prb_client *client, uint32_t request, const struct prb_error *err)
{
    pthread_mutex_lock(&prb_server.lock);
    prb_client_send_failure(client, request, err);
    pthread_mutex_unlock(&prb_server.lock);
}

static void greet(struct prb_client *client, const struct prb_message *message)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    struct prb_error err;
    uint64_t version = 0;
    prb_message_number(message, PRB_FLD_VERSION, &version);
    if (version != PRB_PROTOCOL_VERSION) {
        prb_fail(&err, PRB_UNSUPPORTED,
                 "the probe speaks version %d of the protocol, the client %llu",
                 PRB_PROTOCOL_VERSION, (unsigned long long)version);
        prb_error_remedy(&err, "use the probing that put the probe there (%s)", PRB_PROBE_VERSION);
        refuse(client, message->request, &err);
        client->dead = true;
        return;
    }
    client->greeted = true;
    prb_fields_number(&fields, PRB_FLD_VERSION, PRB_PROTOCOL_VERSION);
    prb_fields_number(&fields, PRB_FLD_PID, (uint64_t)getpid());
    prb_fields_text(&fields, PRB_FLD_TEXT, PRB_PROBE_VERSION, strlen(PRB_PROBE_VERSION));
    answer(client, message->request, &fields);
}

static struct prb_request *find_request(struct prb_client *client, uint64_t number)
{
    struct prb_request *found = NULL;
    pthread_mutex_lock(&prb_server.lock);
    for (int i = 0; i < PRB_REQUESTS_MAX && !found; i++) {
        struct prb_request *request = client->requests[i];
        if (request && request->number == number && !request->cancelled) {
            request->cancelled = true;
            found = prb_request_hold(request);
        }
    }
    pthread_mutex_unlock(&prb_server.lock);
    return found;
}

/* What is not open any more was just answered: that is fine. */
static void cancel(struct prb_client *client, const struct prb_message *message)
{
    uint64_t number = 0;
    prb_message_number(message, PRB_FLD_REQUEST, &number);
    struct prb_request *request = find_request(client, number);
    answer(client, message->request, NULL);
    if (!request)
        return;
    if (request->kind->cancel)
        request->kind->cancel(request, PRB_CANCEL_CLIENT);
    else
        prb_request_failf(request, PRB_TIMEOUT, NULL, "cancelled");
    prb_request_release(request);
}

static void log_request(const struct prb_client *client, const struct prb_request_kind *kind,
                        const struct prb_message *message)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    static const enum prb_message_field shown[] = {PRB_FLD_SOURCE, PRB_FLD_KEY, PRB_FLD_VALUE};
    const char *bytes;
    size_t len;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        if (!prb_message_text(message, shown[i], &bytes, &len))
            continue;
        prb_buf_addc(&text, ' ');
        prb_log_quote(&text, bytes, len);
    }
    if (prb_buf_ok(&text))
        prb_log(prb_server.place.folder, "%s %s%s", client->who, kind->name,
                text.data ? text.data : "");
}

static void begin(struct prb_client *client, const struct prb_request_kind *kind,
                  const struct prb_message *message)
{
    struct prb_error err;
    const char *why;
    if (kind->runs_python && prb_remote_debug_is_off(&why)) {
        prb_fail(&err, PRB_PERMISSION, "the target's owner has switched remote debugging off (%s)",
                 why);
        prb_error_remedy(&err, "start it without %s; what only looks (backtrace, query) works",
                         why);
        refuse(client, message->request, &err);
        return;
    }
    pthread_mutex_lock(&prb_server.lock);
    struct prb_request *request = prb_request_new(client, message->request, kind, &err);
    pthread_mutex_unlock(&prb_server.lock);
    if (!request) {
        refuse(client, message->request, &err);
        return;
    }
    if (kind->logged)
        log_request(client, kind, message);
    kind->begin(request, message);
    prb_request_release(request);
}

/* False: it is no message that a client may send. */
static bool dispatch(struct prb_client *client, const struct prb_message *message)
{
    struct prb_error err;
    if (!message->request || message->type == 0 || message->type >= PRB_MSG_PART)
        return false;
    if (message->type == PRB_MSG_HELLO) {
        greet(client, message);
        return true;
    }
    if (!client->greeted)
        return false;
    if (message->type == PRB_MSG_CANCEL) {
        cancel(client, message);
        return true;
    }
    const struct prb_request_kind *kind = prb_parts_request(message->type);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !kind; i++)
        if (kinds[i]->type == message->type)
            kind = kinds[i];
    if (kind) {
        begin(client, kind, message);
        return true;
    }
    prb_fail(&err, PRB_UNSUPPORTED, "the probe (%s) knows no request %u", PRB_PROBE_VERSION,
             message->type);
    refuse(client, message->request, &err);
    return true;
}

static void take_messages(struct prb_client *client)
{
    struct prb_message message;
    size_t at = 0, used;
    enum prb_taken taken = PRB_TAKEN;
    while (!client->dead) {
        taken = prb_message_take((const uint8_t *)client->in.data + at, client->in.len - at,
                                 &message, &used);
        if (taken != PRB_TAKEN || !dispatch(client, &message))
            break;
        at += used;
    }
    if (taken != PRB_TAKEN_MORE) {
        client->dead = true;
        return;
    }
    memmove(client->in.data, client->in.data + at, client->in.len - at);
    client->in.len -= at;
    if (!client->in.len && client->in.cap > KEEP)
        prb_buf_deinit(&client->in);
}

void prb_client_read(struct prb_client *client)
{
    char *to = prb_buf_reserve(&client->in, READ_AT_ONCE);
    ssize_t n = to ? recv(client->fd, to, READ_AT_ONCE, MSG_DONTWAIT) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0) {
        client->dead = true;
        return;
    }
    client->in.len += (size_t)n;
    take_messages(client);
}
