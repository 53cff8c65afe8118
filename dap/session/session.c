/* A session's life: the reader, the workers, and the end.  See session.h. */
#include "dap/session/session.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "dap/attach/ending.h"

#define READ_AT_ONCE (64u << 10)
#define GOODBYE_MS 2000 /* for the client to take what was said last */

static void pending_free(struct prb_dap_pending *pending)
{
    json_decref(pending->message);
    json_decref(pending->events);
    free(pending);
}

static void look_up(struct prb_dap_session *session)
{
    uint64_t one = 1;
    ssize_t written = write(session->wake, &one, sizeof one);
    (void)written; /* full means that it is awake */
}

void prb_dap_session_leave(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    session->leaving = true;
    pthread_cond_broadcast(&session->changed);
    pthread_cond_broadcast(&session->begun);
    for (unsigned lane = 0; lane < PRB_DAP_LANES; lane++)
        pthread_cond_broadcast(&session->work[lane]);
    pthread_mutex_unlock(&session->lock);
    look_up(session);
}

static void client_lost(void *context) { prb_dap_session_leave(context); }

/* ---- requests that wait ---- */

/* The next one of a lane, which runs then; NULL: the session ends. */
static struct prb_dap_pending *next_of(struct prb_dap_session *session, unsigned lane)
{
    pthread_mutex_lock(&session->lock);
    for (;;) {
        struct prb_dap_pending **at = &session->first, *before = NULL;
        while (*at && (*at)->lane != lane) {
            before = *at;
            at = &(*at)->next;
        }
        struct prb_dap_pending *found = session->leaving ? NULL : *at;
        if (found) {
            *at = found->next;
            if (session->last == found)
                session->last = before;
            session->pending--;
            session->cost -= found->cost;
            session->running[lane] = found;
            found->since = prb_dap_now();
            if (session->watches_none && session->client.progress)
                pthread_cond_signal(&session->begun);
        }
        if (found || session->leaving) {
            pthread_mutex_unlock(&session->lock);
            return found;
        }
        pthread_cond_wait(&session->work[lane], &session->lock);
    }
}

static void *work(struct prb_dap_session *session, unsigned lane)
{
    struct prb_dap_pending *pending;
    while ((pending = next_of(session, lane))) {
        prb_dap_dispatch(session, pending);
        pthread_mutex_lock(&session->lock);
        session->running[lane] = NULL;
        pthread_cond_broadcast(&session->changed);
        pthread_mutex_unlock(&session->lock);
        pending_free(pending);
        prb_dap_outbox_drain(session->outbox);
    }
    return NULL;
}
static void *work_first(void *session) { return work(session, 0); }
static void *work_second(void *session) { return work(session, 1); }

bool prb_dap_is_cancelled(void *context)
{
    struct prb_dap_session *session = context;
    pthread_mutex_lock(&session->lock);
    bool cancelled = session->leaving || session->state == PRB_DAP_ENDED;
    for (unsigned lane = 0; lane < PRB_DAP_LANES; lane++)
        if (session->running[lane] && pthread_equal(session->workers[lane], pthread_self()))
            cancelled |= session->running[lane]->cancelled;
    pthread_mutex_unlock(&session->lock);
    return cancelled;
}

/* What runs is not needed any more; what waits is answered as cancelled when its turn comes. */
static void cancel_all(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    for (struct prb_dap_pending *at = session->first; at; at = at->next)
        at->cancelled = true;
    for (unsigned lane = 0; lane < PRB_DAP_LANES; lane++)
        if (session->running[lane])
            session->running[lane]->cancelled = true;
    pthread_mutex_unlock(&session->lock);
}

static void cancel_one(struct prb_dap_session *session, json_int_t seq)
{
    pthread_mutex_lock(&session->lock);
    for (struct prb_dap_pending *at = session->first; at; at = at->next)
        at->cancelled |= at->seq == seq;
    for (unsigned lane = 0; lane < PRB_DAP_LANES; lane++)
        if (session->running[lane] && session->running[lane]->seq == seq)
            session->running[lane]->cancelled = true;
    pthread_mutex_unlock(&session->lock);
}

/* The request that a cancel means: by its number, or by its progress (progress.c). */
static json_int_t wanted_of(const json_t *arguments)
{
    const char *progress = json_string_value(json_object_get(arguments, "progressId"));
    long long seq;
    if (progress && sscanf(progress, "request-%lld", &seq) == 1)
        return seq;
    return json_integer_value(json_object_get(arguments, "requestId"));
}

static void answer_now(struct prb_dap_session *session, const json_t *request, bool success,
                       const char *text)
{
    json_t *command = json_object_get(request, "command");
    json_t *seq = json_object_get(request, "seq");
    json_t *response = json_pack("{s:s, s:I, s:b}", "type", "response", "request_seq",
                                 json_is_integer(seq) ? json_integer_value(seq) : (json_int_t)0,
                                 "success", success);
    json_object_set_new(response, "command",
                        json_is_string(command) ? json_incref(command) : json_string(""));
    if (text)
        json_object_set_new(response, "message", json_string(text));
    if (text)
        json_object_set_new(
            response, "body",
            json_pack("{s:{s:i, s:s}}", "error", "id", (int)PRB_CORRUPT, "format", text));
    prb_dap_outbox_put(session->outbox, response, false);
}

static void enqueue(struct prb_dap_session *session, struct prb_dap_pending *pending)
{
    const char *command = json_string_value(json_object_get(pending->message, "command"));
    bool urgent = strcmp(command, "pause") == 0;
    if (strcmp(command, "disconnect") == 0 || strcmp(command, "terminate") == 0)
        cancel_all(session);
    pthread_mutex_lock(&session->lock);
    pending->lane = urgent && session->running[0] && session->state >= PRB_DAP_IS_ATTACHED;
    if (session->last)
        session->last->next = pending;
    else
        session->first = pending;
    session->last = pending;
    session->pending++;
    session->cost += pending->cost;
    pthread_cond_signal(&session->work[pending->lane]);
    pthread_mutex_unlock(&session->lock);
}

/* ---- the reader ---- */

static bool is_crowded(struct prb_dap_session *session, size_t cost)
{
    pthread_mutex_lock(&session->lock);
    bool crowded = session->pending >= PRB_DAP_PENDING_MAX ||
                   (session->pending && session->cost + cost > PRB_DAP_PENDING_COST);
    pthread_mutex_unlock(&session->lock);
    return crowded;
}

/* Takes message. */
static void take_request(struct prb_dap_session *session, json_t *message, size_t cost)
{
    const json_t *command = json_object_get(message, "command"),
                 *seq = json_object_get(message, "seq");
    const char *wrong = !json_is_string(command)    ? "the request has no command"
                        : !json_is_integer(seq)     ? "the request has no seq"
                        : is_crowded(session, cost) ? "too many requests wait for their answer"
                                                    : NULL;
    struct prb_dap_pending *pending = wrong ? NULL : calloc(1, sizeof *pending);
    if (pending && strcmp(json_string_value(command), "cancel") != 0) {
        pending->message = message;
        pending->cost = cost;
        pending->seq = json_integer_value(seq);
        enqueue(session, pending);
        return;
    }
    const json_t *arguments = json_object_get(message, "arguments");
    if (pending && arguments && !json_is_object(arguments) && !json_is_null(arguments)) {
        answer_now(session, message, false, "the arguments of cancel are no object");
    } else if (pending) {
        cancel_one(session, wanted_of(json_object_get(message, "arguments")));
        answer_now(session, message, true, NULL);
    } else {
        answer_now(session, message, false, wrong ? wrong : "out of memory");
    }
    free(pending);
    json_decref(message);
}

/* The client's answer to a request of ours that somebody waits for. */
static void take_answer(struct prb_dap_session *session, json_t *message)
{
    char key[32];
    snprintf(key, sizeof key, "%lld",
             (long long)json_integer_value(json_object_get(message, "request_seq")));
    pthread_mutex_lock(&session->lock);
    if (json_object_get(session->answers, key)) {
        json_object_set(session->answers, key, message);
        pthread_cond_broadcast(&session->changed);
    }
    pthread_mutex_unlock(&session->lock);
    json_decref(message);
}

static void take_body(struct prb_dap_session *session, const char *body, size_t len)
{
    struct prb_error why = {0};
    json_t *message = prb_dap_wire_parse(body, len, &why);
    const char *type = json_string_value(json_object_get(message, "type"));
    if (!message) {
        answer_now(session, NULL, false, why.text);
    } else if (type && strcmp(type, "response") == 0) {
        take_answer(session, message);
    } else if (type && strcmp(type, "event") == 0) {
        json_decref(message);
    } else if (type && strcmp(type, "request") == 0) {
        take_request(session, message, prb_dap_wire_cost(body, len));
    } else {
        answer_now(session, message, false, "the message is no request");
        json_decref(message);
    }
}

/* All messages that have come; false: nothing more can be understood. */
static bool take_messages(struct prb_dap_session *session, struct prb_error *err)
{
    const char *body;
    size_t len;
    for (;;) {
        switch (prb_dap_wire_take(&session->wire, &body, &len, err)) {
        case PRB_DAP_TAKEN:
            take_body(session, body, len);
            break;
        case PRB_DAP_TAKEN_MORE:
            return true;
        case PRB_DAP_TAKEN_MALFORMED:
            return false;
        }
    }
}

static bool is_leaving(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool leaving = session->leaving;
    pthread_mutex_unlock(&session->lock);
    return leaving;
}

/* Time that is left to a client that has not shown the token, in ms; -1: it may stay. */
static int patience(struct prb_dap_session *session, double since)
{
    pthread_mutex_lock(&session->lock);
    bool stays = session->authorized;
    pthread_mutex_unlock(&session->lock);
    double left = PRB_DAP_STRANGER_MS - (prb_dap_now() - since) * 1000;
    return stays ? -1 : left > 0 ? (int)left + 1 : 0;
}

static bool has_requests(const struct prb_dap_session *session)
{
    bool has = session->first != NULL;
    for (unsigned lane = 0; lane < PRB_DAP_LANES; lane++)
        has |= session->running[lane] != NULL;
    return has;
}

/* Nothing more comes.  A client that only shut down its sending side gets what it asked for, for a
 * moment: TCP does not say whether it listens. */
static void answer_rest(struct prb_dap_session *session)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += GOODBYE_MS / 1000;
    pthread_mutex_lock(&session->lock);
    while (!session->leaving && has_requests(session))
        if (pthread_cond_timedwait(&session->changed, &session->lock, &deadline) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&session->lock);
}

/* Until the client leaves.  False: it sent what is no message, or shows no token. */
static bool read_all(struct prb_dap_session *session, struct prb_error *err)
{
    PRB_AUTO_FREE char *chunk = malloc(READ_AT_ONCE);
    if (!chunk)
        return prb_fail(err, PRB_NOMEM, "out of memory");
    double since = prb_dap_now();
    while (!is_leaving(session)) {
        struct pollfd fds[] = {{.fd = session->in, .events = POLLIN},
                               {.fd = session->wake, .events = POLLIN}};
        int wait_ms = patience(session, since);
        if (!wait_ms)
            return prb_fail(err, PRB_PERMISSION, "no token was shown within %d s",
                            PRB_DAP_STRANGER_MS / 1000);
        if (poll(fds, 2, wait_ms) < 0 && errno != EINTR)
            return prb_fail_sys(err, errno, "waiting for the client");
        if (!fds[0].revents || fds[1].revents)
            continue;
        ssize_t n = read(session->in, chunk, READ_AT_ONCE);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0) {
            answer_rest(session);
            return true;
        }
        session->wire.body_max = patience(session, since) < 0 ? 0 : PRB_DAP_STRANGER_MAX;
        if (!prb_dap_wire_add(&session->wire, chunk, (size_t)n))
            return prb_fail(err, PRB_NOMEM, "out of memory");
        if (!take_messages(session, err))
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static bool begin(struct prb_dap_session *session, int out, struct prb_error *err)
{
    static void *(*const works[PRB_DAP_LANES])(void *) = {work_first, work_second};
    session->answers = json_object();
    session->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (session->wake < 0)
        return prb_fail_sys(err, errno, "making a session");
    session->outbox = prb_dap_outbox_open(out, client_lost, session, err);
    if (!session->outbox)
        return false;
    unsigned made = 0;
    int failed = 0;
    while (made < PRB_DAP_LANES && !failed)
        if (!(failed = pthread_create(&session->workers[made], NULL, works[made], session)))
            made++;
    if (!failed)
        failed = pthread_create(&session->progress, NULL, prb_dap_progress_run, session);
    if (!failed)
        return true;
    prb_dap_session_leave(session);
    while (made--)
        pthread_join(session->workers[made], NULL);
    return prb_fail_sys(err, failed, "starting a thread");
}

static void end(struct prb_dap_session *session)
{
    for (struct prb_dap_pending *at = session->first, *next; at; at = next) {
        next = at->next;
        pending_free(at);
    }
    prb_dap_ending_release(session);
    prb_dap_outbox_close(session->outbox, GOODBYE_MS);
    prb_dap_wire_deinit(&session->wire);
    prb_dap_paths_clear(&session->paths);
    prb_dap_places_clear(&session->places);
    json_decref(session->held);
    json_decref(session->stopped);
    json_decref(session->answers);
    json_decref(session->settings);
    json_decref(session->facts);
    json_decref(session->plain);
    json_decref(session->marked);
    free(session->title);
    if (session->wake >= 0)
        close(session->wake);
    pthread_cond_destroy(&session->changed);
    pthread_cond_destroy(&session->begun);
    for (unsigned lane = 0; lane < PRB_DAP_LANES; lane++)
        pthread_cond_destroy(&session->work[lane]);
    pthread_mutex_destroy(&session->lock);
}

bool prb_dap_session_run(struct prb_dap_host *host, int in, int out, struct prb_error *err)
{
    struct prb_dap_session session = {
        .host = host, .in = in, .wake = -1, .pidfd = -1, .authorized = !host->token};
    struct prb_error why = {0};
    pthread_mutex_init(&session.lock, NULL);
    pthread_cond_init(&session.changed, NULL);
    pthread_cond_init(&session.begun, NULL);
    for (unsigned lane = 0; lane < PRB_DAP_LANES; lane++)
        pthread_cond_init(&session.work[lane], NULL);
    bool good = begin(&session, out, &why);
    if (good) {
        good = read_all(&session, &why);
        if (!good) {
            prb_dap_say(&session, true, "%s: the connection is closed", why.text);
            prb_dap_send(&session, "terminated", NULL);
        }
        cancel_all(&session);
        prb_dap_session_leave(&session);
        for (unsigned lane = 0; lane < PRB_DAP_LANES; lane++)
            pthread_join(session.workers[lane], NULL);
        pthread_join(session.progress, NULL);
    }
    end(&session);
    if (!good && err)
        *err = why;
    return good;
}
