/* Bytes between connections and the bus: pump.h. */
#include "fleet/stream/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/file.h"

#define ALIVE 2.0                    /* s: so often at least something is sent */
#define TELL (PRB_STREAM_WINDOW / 4) /* bytes passed on, of which the other side is told */
#define LINGER 5.0                   /* s for connections to end after what served them */
#define ROUND_MS 500

struct connection {
    unsigned id; /* 0: free */
    int in, out;
    struct prb_buf waiting;   /* from the other side, for out */
    size_t written;           /* of it */
    uint64_t sent, confirmed; /* bytes to the other side; of them passed on there */
    uint64_t passed, told;    /* bytes passed on here; of them told */
    bool ended, other_ended, closed_out;
};

struct pump {
    const struct prb_stream *stream;
    struct prb_packet_way way;
    char *to; /* owned: where the other side is */
    struct connection connections[PRB_STREAM_CONNECTIONS];
    unsigned next_id;
    uint64_t number, expected;        /* of the last message sent; of the next to come */
    double sent, heard, served_until; /* s, monotonic */
    bool over;
    char *why_out;
};

static bool tell(struct pump *pump, enum prb_packet_kind kind, struct connection *connection,
                 const char *data, size_t len, struct prb_error *err)
{
    struct prb_packet packet = {.kind = kind, .len = len};
    if (connection) {
        packet.connection = connection->id;
        packet.passed = connection->told = connection->passed;
    }
    /* Nobody has told yet where the other side is: it will, or is given up. */
    if (!pump->way.to)
        return true;
    packet.number = ++pump->number;
    pump->sent = prb_clock_s();
    return prb_packet_send(&pump->way, &packet, data, err);
}

/* ---- connections ---- */

static struct connection *find(struct pump *pump, unsigned id)
{
    for (size_t i = 0; i < PRB_STREAM_CONNECTIONS; i++)
        if (pump->connections[i].id == id)
            return &pump->connections[i];
    return NULL;
}

static size_t count(const struct pump *pump)
{
    size_t found = 0;
    for (size_t i = 0; i < PRB_STREAM_CONNECTIONS; i++)
        found += pump->connections[i].id != 0;
    return found;
}

static void release(struct pump *pump, struct connection *connection)
{
    if (connection->in != pump->stream->in || pump->stream->in < 0)
        close(connection->in);
    prb_buf_deinit(&connection->waiting);
    *connection = (struct connection){0};
}

static struct connection *add(struct pump *pump, unsigned id, int in, int out)
{
    struct connection *connection = find(pump, 0);
    if (!connection)
        return NULL;
    *connection = (struct connection){.id = id, .in = in, .out = out};
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    return connection;
}

/* Once both directions have ended. */
static void settle(struct pump *pump, struct connection *connection)
{
    bool written = connection->written == connection->waiting.len;
    if (connection->other_ended && written && !connection->closed_out) {
        connection->closed_out = true;
        if (connection->out == connection->in)
            shutdown(connection->out, SHUT_WR);
    }
    if (connection->ended && connection->closed_out)
        release(pump, connection);
}

/* What cannot be written is nobody's any more, and counts as passed on. */
static bool write_some(struct pump *pump, struct connection *connection, struct prb_error *err)
{
    struct prb_buf *waiting = &connection->waiting;
    while (connection->written < waiting->len) {
        ssize_t n = write(connection->out, waiting->data + connection->written,
                          waiting->len - connection->written);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            n = (ssize_t)(waiting->len - connection->written);
        connection->written += (size_t)n;
        connection->passed += (uint64_t)n;
    }
    if (connection->written == waiting->len)
        waiting->len = connection->written = 0;
    bool good = connection->passed - connection->told < TELL ||
                tell(pump, PRB_PACKET_ALIVE, connection, NULL, 0, err);
    settle(pump, connection);
    return good;
}

static bool read_some(struct pump *pump, struct connection *connection, struct prb_error *err)
{
    char data[PRB_STREAM_DATA];
    size_t room = PRB_STREAM_WINDOW - (size_t)(connection->sent - connection->confirmed);
    ssize_t n = read(connection->in, data, room < sizeof data ? room : sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n > 0) {
        connection->sent += (uint64_t)n;
        return tell(pump, PRB_PACKET_DATA, connection, data, (size_t)n, err);
    }
    connection->ended = true;
    bool good = tell(pump, PRB_PACKET_END, connection, NULL, 0, err);
    settle(pump, connection);
    return good;
}

static bool begin(struct pump *pump, int in, int out, struct prb_error *err)
{
    struct connection *connection = add(pump, ++pump->next_id, in, out);
    if (connection)
        return tell(pump, PRB_PACKET_OPEN, connection, NULL, 0, err);
    if (in != pump->stream->in)
        close(in);
    return true;
}

static bool let_in(struct pump *pump, struct prb_error *err)
{
    const struct prb_stream *stream = pump->stream;
    int fd = accept4(stream->listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return true;
    if (stream->admits && !stream->admits(stream->context, fd)) {
        close(fd);
        return true;
    }
    return begin(pump, fd, fd, err);
}

/* ---- what comes from the other side ---- */

/* The other side's connection; refused: it is told that it has ended. */
static bool open_here(struct pump *pump, const struct prb_packet *packet, struct prb_error *err)
{
    const struct prb_stream *stream = pump->stream;
    struct prb_error why = {0};
    struct connection none = {.id = packet->connection};
    if (!stream->open || packet->connection <= pump->next_id)
        return prb_fail(err, PRB_CORRUPT, "the other side began a connection that it may not");
    pump->next_id = packet->connection;
    int fd = find(pump, 0) ? stream->open(stream->context, &why) : -1;
    if (fd < 0)
        return tell(pump, PRB_PACKET_END, &none, NULL, 0, err);
    add(pump, packet->connection, fd, fd);
    return true;
}

static bool take(struct pump *pump, const struct prb_packet *packet, struct prb_error *err)
{
    struct connection *connection = packet->connection ? find(pump, packet->connection) : NULL;
    if (connection) {
        if (packet->passed < connection->confirmed || packet->passed > connection->sent)
            return prb_fail(err, PRB_CORRUPT, "the other side passed on what it never had");
        connection->confirmed = packet->passed;
    }
    switch (packet->kind) {
    case PRB_PACKET_OPEN:
        return open_here(pump, packet, err);
    case PRB_PACKET_DATA:
        if (!connection) /* it has ended here meanwhile */
            return true;
        if (connection->other_ended ||
            packet->len > PRB_STREAM_WINDOW - (connection->waiting.len - connection->written))
            return prb_fail(err, PRB_CORRUPT, "the other side sent more than it may");
        if (connection->written) {
            struct prb_buf *waiting = &connection->waiting;
            memmove(waiting->data, waiting->data + connection->written,
                    waiting->len -= connection->written);
            connection->written = 0;
        }
        prb_buf_add(&connection->waiting, packet->data, packet->len);
        return prb_buf_ok(&connection->waiting) ? write_some(pump, connection, err)
                                                : prb_nomem(err);
    case PRB_PACKET_END:
        if (connection) {
            connection->other_ended = true;
            settle(pump, connection);
        }
        return true;
    case PRB_PACKET_OVER:
        pump->over = true;
        snprintf(pump->why_out, 200, "%.*s", (int)(packet->len < 199 ? packet->len : 199),
                 packet->data);
        return true;
    default:
        return true;
    }
}

static bool take_packet(struct pump *pump, const struct prb_packet *packet, struct prb_error *err)
{
    if (packet->nobody)
        return prb_fail(err, PRB_GONE, "the other side of the stream is gone");
    if (packet->wrong)
        return prb_fail(err, PRB_CORRUPT, "a message of the stream cannot be parsed");
    if (!prb_packet_check(&pump->way, packet, err))
        return false;
    if (packet->number != pump->expected)
        return prb_fail(err, PRB_GONE, "messages of the stream were lost on the bus");
    pump->expected++;
    pump->heard = prb_clock_s();
    if (!pump->way.to && !(pump->way.to = pump->to = strdup(packet->reply)))
        return prb_nomem(err);
    return take(pump, packet, err);
}

static bool take_all(struct pump *pump, struct prb_error *err)
{
    uint64_t count;
    bool full = false, good = true;
    if (read(prb_mailbox_fd(pump->stream->box), &count, sizeof count) < 0 && errno != EAGAIN)
        return prb_fail_sys(err, errno, "an eventfd");
    for (struct prb_packet *packet;
         good && !pump->over && (packet = prb_mailbox_next(pump->stream->box, &full)); free(packet))
        good = take_packet(pump, packet, err);
    return good && (!full || prb_fail(err, PRB_CORRUPT, "the other side sent more than it may"));
}

/* ---- waiting ---- */

static bool keep_alive(struct pump *pump, struct prb_error *err)
{
    double now = prb_clock_s();
    if (now > pump->heard + PRB_STREAM_SILENT)
        return prb_fail(err, PRB_GONE, "the other side of the stream was silent for %.0f s",
                        PRB_STREAM_SILENT);
    return now < pump->sent + ALIVE || tell(pump, PRB_PACKET_ALIVE, NULL, NULL, 0, err);
}

struct polled {
    struct pollfd fds[4 + 2 * PRB_STREAM_CONNECTIONS];
    struct connection *of[4 + 2 * PRB_STREAM_CONNECTIONS];
    nfds_t count;
};

static void want(struct polled *polled, int fd, short events, struct connection *of)
{
    polled->of[polled->count] = of;
    polled->fds[polled->count++] = (struct pollfd){.fd = fd, .events = events};
}

static void choose(struct pump *pump, struct polled *polled)
{
    const struct prb_stream *stream = pump->stream;
    polled->count = 0;
    want(polled, prb_mailbox_fd(stream->box), POLLIN, NULL);
    want(polled, stream->stop_fd, POLLIN, NULL);
    want(polled, pump->served_until > 0 ? -1 : stream->served_fd, POLLIN, NULL);
    want(polled, count(pump) < PRB_STREAM_CONNECTIONS ? stream->listening : -1, POLLIN, NULL);
    for (size_t i = 0; i < PRB_STREAM_CONNECTIONS; i++) {
        struct connection *one = &pump->connections[i];
        if (!one->id)
            continue;
        bool reads = !one->ended && pump->way.to && one->sent - one->confirmed < PRB_STREAM_WINDOW;
        bool writes = one->written < one->waiting.len;
        if (reads)
            want(polled, one->in, POLLIN, one);
        if (writes)
            want(polled, one->out, POLLOUT, one);
    }
}

static bool serve(struct pump *pump, const struct polled *polled, struct prb_error *err)
{
    if (!take_all(pump, err))
        return false;
    if (pump->over)
        return true;
    for (nfds_t i = 4; i < polled->count; i++) {
        struct connection *one = polled->of[i];
        if (!polled->fds[i].revents || !one->id)
            continue;
        if (polled->fds[i].events == POLLOUT ? !write_some(pump, one, err)
                                             : !read_some(pump, one, err))
            return false;
    }
    return !polled->fds[3].revents || let_in(pump, err);
}

/* What served the connections has ended: what it said last is still to be read. */
static bool is_served(const struct pump *pump)
{
    bool open = false;
    for (size_t i = 0; i < PRB_STREAM_CONNECTIONS; i++)
        open = open || (pump->connections[i].id && !pump->connections[i].ended);
    return pump->served_until == 0 || (open && prb_clock_s() < pump->served_until);
}

static bool run(struct pump *pump, struct prb_error *err)
{
    const struct prb_stream *stream = pump->stream;
    struct polled polled;
    if (stream->in >= 0 && !begin(pump, stream->in, stream->out, err))
        return false;
    if (stream->in < 0 && pump->way.to && !tell(pump, PRB_PACKET_ALIVE, NULL, NULL, 0, err))
        return false;
    while (!pump->over && is_served(pump)) {
        if (stream->in >= 0 && !count(pump)) /* the only one has ended */
            break;
        choose(pump, &polled);
        if (poll(polled.fds, polled.count, ROUND_MS) < 0 && errno != EINTR)
            return prb_fail_sys(err, errno, "waiting for a stream");
        if (polled.fds[1].revents)
            break;
        if (polled.fds[2].revents)
            pump->served_until = prb_clock_s() + LINGER;
        if (!serve(pump, &polled, err) || (!pump->over && !keep_alive(pump, err)))
            return false;
    }
    return true;
}

bool prb_stream_run(const struct prb_stream *stream, char why_out[200], struct prb_error *err)
{
    struct pump *pump = calloc(1, sizeof *pump);
    static const char ended[] = "the process has ended";
    *why_out = '\0';
    if (!pump)
        return prb_nomem(err);
    pump->stream = stream;
    pump->way = stream->way;
    pump->why_out = why_out;
    pump->expected = 1;
    pump->heard = pump->sent = prb_clock_s();
    bool good = run(pump, err);
    if (!pump->over) {
        const char *why = !good ? "the stream broke" : pump->served_until > 0 ? ended : "";
        tell(pump, PRB_PACKET_OVER, NULL, why, strlen(why), NULL);
        prb_bus_flush(stream->way.bus, 1, NULL);
    }
    for (size_t i = 0; i < PRB_STREAM_CONNECTIONS; i++)
        if (pump->connections[i].id)
            release(pump, &pump->connections[i]);
    free(pump->to);
    free(pump);
    return good;
}
