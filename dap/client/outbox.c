/* The queue to the client: see outbox.h.  Messages are queued as text, so that the writer shares
 * nothing with the other threads. */
#include "dap/client/outbox.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/error.h"
#include "dap/client/wire.h"

#define NOW_MAX (64u << 10) /* bytes that the queueing thread may write itself */

struct prb_dap_outbox {
    int fd;
    void (*lost)(void *context);
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct prb_buf waiting; /* text not yet written */
    size_t writing;         /* bytes that the writer is writing */
    json_int_t last;        /* seq */
    unsigned long dropped;  /* since the last note */
    bool started, ending, is_lost, is_socket;
    double deadline; /* s, monotonic: of ending */
};

static bool must_stop(struct prb_dap_outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    bool stop = outbox->ending && prb_clock_s() >= outbox->deadline;
    pthread_mutex_unlock(&outbox->lock);
    return stop;
}

static ssize_t write_some(struct prb_dap_outbox *outbox, const char *data, size_t len)
{
    return outbox->is_socket ? send(outbox->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT)
                             : write(outbox->fd, data, len < PIPE_BUF ? len : PIPE_BUF);
}

/* Write all; false: the client is lost. */
static bool write_all(struct prb_dap_outbox *outbox, const char *data, size_t len)
{
    enum { ROUND_MS = 100 };
    int waited = 0;
    while (len) {
        struct pollfd fd = {.fd = outbox->fd, .events = POLLOUT};
        int ready = poll(&fd, 1, ROUND_MS);
        if (ready == 0 || (ready < 0 && errno == EINTR)) {
            waited += ROUND_MS;
            if (waited >= PRB_DAP_SEND_MS || must_stop(outbox))
                return false;
            continue;
        }
        ssize_t n = write_some(outbox, data, len);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (n <= 0)
            continue;
        waited = 0;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

static void *write_them(void *context)
{
    struct prb_dap_outbox *outbox = context;
    pthread_mutex_lock(&outbox->lock);
    while (!outbox->is_lost && (outbox->waiting.len || !outbox->ending)) {
        if (!outbox->waiting.len) {
            pthread_cond_wait(&outbox->changed, &outbox->lock);
            continue;
        }
        PRB_AUTO(prb_buf) struct prb_buf now = outbox->waiting;
        outbox->waiting = (struct prb_buf){0};
        outbox->writing = now.len;
        pthread_mutex_unlock(&outbox->lock);
        bool written = write_all(outbox, now.data, now.len);
        pthread_mutex_lock(&outbox->lock);
        outbox->writing = 0;
        outbox->is_lost |= !written;
        pthread_cond_broadcast(&outbox->changed);
    }
    bool report = outbox->is_lost && !outbox->ending;
    pthread_mutex_unlock(&outbox->lock);
    if (report)
        outbox->lost(outbox->context);
    return NULL;
}

struct prb_dap_outbox *prb_dap_outbox_open(int fd, void (*lost)(void *context), void *context,
                                           struct prb_error *err)
{
    struct prb_dap_outbox *outbox = calloc(1, sizeof *outbox);
    int type;
    socklen_t size = sizeof type;
    if (!outbox)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    *outbox = (struct prb_dap_outbox){.fd = fd, .lost = lost, .context = context};
    outbox->is_socket = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
    pthread_mutex_init(&outbox->lock, NULL);
    prb_clock_cond_init(&outbox->changed);
    return outbox;
}

bool prb_dap_outbox_start(struct prb_dap_outbox *outbox, struct prb_error *err)
{
    int failed = pthread_create(&outbox->thread, NULL, write_them, outbox);
    pthread_mutex_lock(&outbox->lock);
    outbox->started = !failed;
    pthread_mutex_unlock(&outbox->lock);
    return !failed || prb_fail_sys(err, failed, "starting a thread");
}

void prb_dap_outbox_close(struct prb_dap_outbox *outbox, int wait_ms)
{
    if (!outbox)
        return;
    pthread_mutex_lock(&outbox->lock);
    outbox->ending = true;
    outbox->deadline = prb_clock_s() + wait_ms * 1e-3;
    pthread_cond_broadcast(&outbox->changed);
    pthread_mutex_unlock(&outbox->lock);
    if (outbox->started)
        pthread_join(outbox->thread, NULL);
    pthread_mutex_destroy(&outbox->lock);
    pthread_cond_destroy(&outbox->changed);
    prb_buf_deinit(&outbox->waiting);
    free(outbox);
}

static void append(struct prb_dap_outbox *outbox, json_t *message)
{
    json_object_set_new(message, "seq", json_integer(++outbox->last));
    if (!prb_dap_wire_write(&outbox->waiting, message))
        outbox->is_lost = true;
}

static void append_note(struct prb_dap_outbox *outbox)
{
    char text[120];
    snprintf(text, sizeof text,
             "probing: %lu pieces of output were dropped: the client reads too slowly\n",
             outbox->dropped);
    outbox->dropped = 0;
    json_t *note = json_pack("{s:s, s:s, s:{s:s, s:s}}", "type", "event", "event", "output", "body",
                             "category", "console", "output", text);
    if (note)
        append(outbox, note);
    json_decref(note);
}

/* Write now what the client takes at once: waking the writer takes longer than writing.  The lock
 * is held; a pipe that is ready takes PIPE_BUF bytes without blocking. */
static void write_now(struct prb_dap_outbox *outbox)
{
    struct pollfd fd = {.fd = outbox->fd, .events = POLLOUT};
    struct prb_buf *waiting = &outbox->waiting;
    if (outbox->writing || outbox->is_lost || waiting->len > NOW_MAX ||
        (!outbox->is_socket && (waiting->len > PIPE_BUF || poll(&fd, 1, 0) != 1)))
        return;
    ssize_t n = write_some(outbox, waiting->data, waiting->len);
    if (n <= 0)
        return; /* the writer meets the same error, and handles it */
    memmove(waiting->data, waiting->data + n, waiting->len - (size_t)n);
    waiting->len -= (size_t)n;
}

json_int_t prb_dap_outbox_put(struct prb_dap_outbox *outbox, json_t *message, bool droppable)
{
    json_int_t seq = 0;
    if (!message)
        return 0;
    pthread_mutex_lock(&outbox->lock);
    size_t waiting = outbox->waiting.len + outbox->writing;
    if (droppable && waiting > PRB_DAP_OUTBOX_SOFT) {
        outbox->dropped++;
    } else if (!outbox->is_lost) {
        if (outbox->dropped)
            append_note(outbox);
        append(outbox, message);
        seq = outbox->last;
        outbox->is_lost |= waiting > PRB_DAP_OUTBOX_HARD;
        write_now(outbox);
        outbox->is_lost |= !outbox->started && outbox->waiting.len;
        if (outbox->waiting.len || outbox->is_lost)
            pthread_cond_broadcast(&outbox->changed);
    }
    pthread_mutex_unlock(&outbox->lock);
    json_decref(message);
    return seq;
}

bool prb_dap_outbox_drain(struct prb_dap_outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    while (!outbox->is_lost && !outbox->ending &&
           outbox->waiting.len + outbox->writing > PRB_DAP_OUTBOX_SOFT)
        pthread_cond_wait(&outbox->changed, &outbox->lock);
    bool good = !outbox->is_lost;
    pthread_mutex_unlock(&outbox->lock);
    return good;
}
