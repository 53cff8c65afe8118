/* Messages of a stream, and where they wait: packet.h. */
#include "fleet/stream/packet.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/file.h"
#include "base/hex.h"

#define WAITING_MAX ((size_t)96 << 20) /* bytes: every connection's window, and some more */
#define COST 256                       /* of a message beside its body */

static const char *const kinds[PRB_PACKET_KINDS] = {"alive", "open", "data", "end", "over"};

/* ---- signatures ---- */

static bool signed_text(const struct prb_packet_way *way, const char *reply, const char *text,
                        const char *data, size_t len, struct prb_buf *out, struct prb_error *err)
{
    unsigned char digest[32];
    char hex[2 * sizeof digest + 1];
    if (!prb_digest(data, len, digest, err))
        return false;
    prb_hex(digest, sizeof digest, hex);
    prb_buf_addf(out, "probing.v1.stream\n%s\n%s\n%s\n%s\n", way->id, reply, text, hex);
    return prb_buf_ok(out) || prb_nomem(err);
}

bool prb_packet_check(const struct prb_packet_way *way, const struct prb_packet *packet,
                      struct prb_error *err)
{
    unsigned char signature[PRB_NKEY_SIGNATURE];
    size_t size = way->secret ? PRB_SECRET : PRB_NKEY_SIGNATURE;
    PRB_AUTO(prb_buf) struct prb_buf what = {0};
    if (!way->secret && !way->trusted)
        return true;
    if (strcmp(packet->reply, way->from) == 0)
        return prb_fail(err, PRB_PERMISSION, "a message of this side of the stream came back");
    if (!prb_unhex(packet->signature, signature, size))
        return prb_fail(err, PRB_PERMISSION, "a message of the stream is not signed");
    return signed_text(way, packet->reply, packet->text, packet->data, packet->len, &what, err) &&
           (way->secret ? prb_secret_verify(way->secret, what.data, what.len, signature, err)
                        : prb_nkey_verify(way->trusted, what.data, what.len, signature, err));
}

static bool sign(const struct prb_packet_way *way, const char *text, const char *data, size_t len,
                 char hex_out[2 * PRB_NKEY_SIGNATURE + 1], struct prb_error *err)
{
    unsigned char signature[PRB_NKEY_SIGNATURE];
    PRB_AUTO(prb_buf) struct prb_buf what = {0};
    if (!signed_text(way, way->from, text, data, len, &what, err) ||
        !(way->secret ? prb_secret_sign(way->secret, what.data, what.len, signature, err)
                      : prb_nkey_sign(way->key, what.data, what.len, signature, err)))
        return false;
    prb_hex(signature, way->secret ? PRB_SECRET : PRB_NKEY_SIGNATURE, hex_out);
    return true;
}

bool prb_packet_send(const struct prb_packet_way *way, const struct prb_packet *packet,
                     const char *data, struct prb_error *err)
{
    char text[sizeof packet->text], hex[sizeof packet->signature];
    snprintf(text, sizeof text, "%" PRIu64 " %s %u %" PRIu64, packet->number, kinds[packet->kind],
             packet->connection, packet->passed);
    struct prb_bus_message message = {
        .subject = way->to,
        .reply = way->from,
        .headers = {[PRB_BUS_ID] = way->id, [PRB_BUS_STREAM] = text},
        .data = data ? data : "",
        .len = packet->len,
    };
    if (way->secret || way->key) {
        if (!sign(way, text, message.data, packet->len, hex, err))
            return false;
        message.headers[PRB_BUS_SIGNATURE] = hex;
    }
    return prb_bus_publish(way->bus, &message, err);
}

/* ---- a message that came ---- */

static bool take_number(const char **at, uint64_t *out)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    *out = strtoull(*at, &end, 10);
    if (*end && *end != ' ')
        return false;
    *at = end + (*end == ' ');
    return true;
}

static bool take_kind(const char **at, enum prb_packet_kind *out)
{
    size_t len = strcspn(*at, " ");
    for (int i = 0; i < PRB_PACKET_KINDS; i++)
        if (strlen(kinds[i]) == len && strncmp(*at, kinds[i], len) == 0 && (*at)[len]) {
            *out = (enum prb_packet_kind)i;
            *at += len + 1;
            return true;
        }
    return false;
}

static bool parse(struct prb_packet *packet)
{
    const char *at = packet->text;
    uint64_t connection;
    if (!take_number(&at, &packet->number) || !take_kind(&at, &packet->kind) ||
        !take_number(&at, &connection) || !take_number(&at, &packet->passed) || *at ||
        connection > UINT32_MAX)
        return false;
    packet->connection = (unsigned)connection;
    return true;
}

static struct prb_packet *packet_of(const struct prb_bus_message *message, const char *id)
{
    const char *reply = message->reply ? message->reply : "";
    const char *text = message->headers[PRB_BUS_STREAM], *of = message->headers[PRB_BUS_ID];
    const char *signature = message->headers[PRB_BUS_SIGNATURE];
    struct prb_packet *packet = calloc(1, sizeof *packet + message->len + strlen(reply) + 2);
    if (!packet)
        return NULL;
    packet->len = message->len;
    memcpy(packet->data, message->data, message->len);
    packet->reply = packet->data + message->len + 1;
    strcpy(packet->reply, reply);
    packet->nobody = message->nobody;
    if (message->nobody)
        return packet;
    snprintf(packet->text, sizeof packet->text, "%s", text ? text : "");
    snprintf(packet->signature, sizeof packet->signature, "%s", signature ? signature : "");
    packet->wrong = !of || strcmp(of, id) != 0 || message->len > PRB_STREAM_DATA || !parse(packet);
    return packet;
}

/* ---- where they wait ---- */

struct prb_mailbox {
    struct prb_bus_subscription *subscription;
    char id[PRB_STREAM_ID];
    int fd;
    pthread_mutex_t lock;
    struct prb_packet *first, **last; /* guarded by lock */
    size_t bytes;
    bool full;
};

static void on_message(void *context, const struct prb_bus_message *message)
{
    struct prb_mailbox *box = context;
    const uint64_t one = 1;
    size_t cost = message->len + COST;
    pthread_mutex_lock(&box->lock);
    struct prb_packet *packet =
        box->full || box->bytes + cost > WAITING_MAX ? NULL : packet_of(message, box->id);
    if (packet) {
        *box->last = packet;
        box->last = &packet->next;
        box->bytes += cost;
    } else {
        box->full = true;
    }
    pthread_mutex_unlock(&box->lock);
    prb_write_all(box->fd, &one, sizeof one);
}

static void end(void *context)
{
    struct prb_mailbox *box = context;
    for (struct prb_packet *packet; (packet = box->first); free(packet))
        box->first = packet->next;
    pthread_mutex_destroy(&box->lock);
    close(box->fd);
    free(box);
}

struct prb_mailbox *prb_mailbox_new(struct prb_bus *bus, const char *subject, const char *id,
                                    struct prb_error *err)
{
    struct prb_mailbox *box = calloc(1, sizeof *box);
    if (!box)
        return PRB_NULL(prb_nomem(err));
    box->last = &box->first;
    snprintf(box->id, sizeof box->id, "%s", id);
    pthread_mutex_init(&box->lock, NULL);
    box->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (box->fd < 0) {
        prb_fail(err, PRB_IO, "an eventfd cannot be made");
        pthread_mutex_destroy(&box->lock);
        free(box);
        return NULL;
    }
    box->subscription = prb_bus_subscribe(bus, subject, on_message, box, err);
    if (box->subscription)
        return box;
    end(box);
    return NULL;
}

void prb_mailbox_free(struct prb_mailbox *box)
{
    if (box)
        prb_bus_unsubscribe_then(box->subscription, end);
}

int prb_mailbox_fd(const struct prb_mailbox *box) { return box->fd; }

struct prb_packet *prb_mailbox_next(struct prb_mailbox *box, bool *full_out)
{
    pthread_mutex_lock(&box->lock);
    struct prb_packet *packet = box->first;
    if (packet) {
        box->bytes -= packet->len + COST;
        if (!(box->first = packet->next))
            box->last = &box->first;
    }
    *full_out = box->full && !packet;
    pthread_mutex_unlock(&box->lock);
    return packet;
}
