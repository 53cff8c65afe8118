/* Open requests: who holds them, and what is sent for them (request.h). */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "inject/probe/libc.h"
#include "inject/probe/server/server.h"

struct prb_request *prb_request_new(struct prb_client *client, uint32_t number,
                                    const struct prb_request_kind *kind, struct prb_error *err)
{
    int place = -1;
    for (int i = 0; i < PRB_REQUESTS_MAX; i++) {
        const struct prb_request *other = client->requests[i];
        if (other && other->number == number)
            return PRB_NULL(prb_fail(err, PRB_USAGE, "request %u is not answered yet", number));
        if (!other)
            place = i;
    }
    if (place < 0)
        return PRB_NULL(
            prb_fail(err, PRB_BUSY, "this connection has %d open requests", PRB_REQUESTS_MAX));
    struct prb_request *request = calloc(1, sizeof *request);
    if (!request)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "the target is out of memory"));
    request->number = number;
    request->kind = kind;
    request->client = client;
    request->holders = 2; /* the client, and who began it */
    client->requests[place] = request;
    return request;
}

struct prb_request *prb_request_hold(struct prb_request *request)
{
    request->holders++;
    return request;
}

void prb_request_release(struct prb_request *request)
{
    if (--request->holders)
        return;
    if (request->release)
        request->release(request->data);
    free(request);
}

void prb_request_set_data(struct prb_request *request, void *data, void (*release)(void *data))
{
    request->data = data;
    request->release = release;
}

void *prb_request_data(const struct prb_request *request) { return request->data; }

/* A handler's thread may live on in a child of fork(2), where there is no server. */
static bool lock_if_open(struct prb_request *request)
{
    if (getpid() != prb_server.owner)
        return false;
    pthread_mutex_lock(&prb_server.lock);
    if (request->client && !request->client->dead)
        return true;
    pthread_mutex_unlock(&prb_server.lock);
    return false;
}

static void unlock(void) { pthread_mutex_unlock(&prb_server.lock); }

bool prb_request_open(struct prb_request *request)
{
    bool open = lock_if_open(request);
    if (open)
        unlock();
    return open;
}

static enum prb_sent send_part(struct prb_request *request, const struct prb_buf *fields,
                               size_t bound)
{
    if (!lock_if_open(request))
        return PRB_SENT_CLOSED;
    bool room = prb_client_waiting(request->client) < bound;
    if (room)
        prb_client_send(request->client, PRB_MSG_PART, request->number, fields);
    unlock();
    return room ? PRB_SENT : PRB_SENT_FULL;
}

enum prb_sent prb_request_output(struct prb_request *request, unsigned stream, const char *text,
                                 size_t len)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    prb_fields_number(&fields, PRB_FLD_STREAM, stream);
    prb_fields_text(&fields, PRB_FLD_OUTPUT, text, len);
    return send_part(request, &fields, PRB_OUTPUT_WAIT);
}

enum prb_sent prb_request_item(struct prb_request *request, const char *text, size_t len)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    prb_fields_text(&fields, PRB_FLD_ITEM, text, len);
    return send_part(request, &fields, PRB_OUTPUT_WAIT);
}

enum prb_sent prb_request_item_now(struct prb_request *request, const char *text, size_t len)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    prb_fields_text(&fields, PRB_FLD_ITEM, text, len);
    return send_part(request, &fields, SIZE_MAX);
}

bool prb_request_wait_room(struct prb_request *request, double seconds)
{
    struct timespec until = prb_clock_in(seconds);
    if (!lock_if_open(request))
        return false;
    int failed = 0;
    while (request->client && !request->client->dead &&
           prb_client_waiting(request->client) >= PRB_OUTPUT_WAIT && failed != ETIMEDOUT)
        failed = pthread_cond_timedwait(&prb_server.changed, &prb_server.lock, &until);
    bool room = request->client && !request->client->dead && failed != ETIMEDOUT;
    unlock();
    return room;
}

/* With the lock held: the client forgets it. */
static void close_request(struct prb_request *request)
{
    struct prb_request **all = request->client->requests;
    for (int i = 0; i < PRB_REQUESTS_MAX; i++)
        if (all[i] == request)
            all[i] = NULL;
    request->client = NULL;
}

bool prb_request_end(struct prb_request *request, const struct prb_buf *fields)
{
    if (!lock_if_open(request))
        return false;
    prb_client_send(request->client, PRB_MSG_END, request->number, fields);
    close_request(request);
    unlock();
    prb_request_release(request); /* the client's */
    return true;
}

bool prb_request_fail(struct prb_request *request, const struct prb_error *err)
{
    if (!lock_if_open(request))
        return false;
    prb_client_send_failure(request->client, request->number, err);
    close_request(request);
    unlock();
    prb_request_release(request);
    return true;
}

bool prb_request_failf(struct prb_request *request, enum prb_code code, const char *remedy,
                       const char *format, ...)
{
    struct prb_error err;
    va_list args;
    va_start(args, format);
    prb_fail_args(&err, code, remedy, format, args);
    va_end(args);
    return prb_request_fail(request, &err);
}

void prb_client_abandon(struct prb_client *client, const struct prb_request_kind *keep)
{
    struct prb_request *left[PRB_REQUESTS_MAX];
    int count = 0;
    pthread_mutex_lock(&prb_server.lock);
    for (int i = 0; i < PRB_REQUESTS_MAX; i++) {
        struct prb_request *request = client->requests[i];
        if (!request || request->kind == keep)
            continue;
        left[count++] = request;
        close_request(request);
    }
    unlock();
    for (int i = 0; i < count; i++) {
        if (left[i]->kind->cancel)
            left[i]->kind->cancel(left[i], PRB_CANCEL_GONE);
        prb_request_release(left[i]);
    }
}
