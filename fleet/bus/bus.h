/*
 * A connection to the bus: NATS by libnats, which is opened when it is first needed.  Any thread
 * may publish; what comes is given on a thread of libnats, or taken from an inbox.
 */
#ifndef PRB_FLEET_BUS_H
#define PRB_FLEET_BUS_H

#include "base/buf.h"
#include "fleet/bus/bus_file.h"

#define PRB_BUS_SUBJECT 640         /* bytes of a subject, with the NUL */
#define PRB_BUS_OWN 80              /* of one of ours, to which others reply */
#define PRB_BUS_TOKEN (3 * 128 + 1) /* of a job's or host's name as a part of a subject */

struct prb_bus;

enum prb_bus_event { PRB_BUS_LOST, PRB_BUS_BACK, PRB_BUS_CLOSED, PRB_BUS_REFUSED };

struct prb_bus_options {
    const char *name; /* as the server's list of connections shows it */
    bool insecure;    /* a server without TLS is taken elsewhere than on this host, too */
    bool keep;        /* connect again for ever, and wait for the server at first */
    unsigned hosts;   /* that may do so at once */
    /* On a thread of libnats; text of REFUSED: what the server says.  May be NULL. */
    void (*event)(void *context, enum prb_bus_event event, const char *text);
    void *context;
};

/* Errors: UNSUPPORTED (no libnats), PERMISSION (key, certificate, no TLS), IO (no server). */
struct prb_bus *prb_bus_open(const struct prb_bus_file *file, const struct prb_bus_options *options,
                             struct prb_error *err) PRB_MUST_CHECK;
void prb_bus_close(struct prb_bus *bus);
PRB_DEFINE_AUTO_PTR(prb_bus, struct prb_bus, prb_bus_close)
/* What the server refused since the last call, in the error: PERMISSION.  True: nothing. */
bool prb_bus_check(struct prb_bus *bus, struct prb_error *err);

/* ---- messages ---- */

#define PRB_BUS_HEADERS(HEADER)                                                                    \
    HEADER(HOST_HEADER, "Probing-Host")                                                            \
    HEADER(ID, "Probing-Id")                                                                       \
    HEADER(PART_HEADER, "Probing-Part")                                                            \
    HEADER(PACKED, "Probing-Packed")                                                               \
    HEADER(STREAM, "Probing-Stream")                                                               \
    HEADER(SIGNATURE, "Probing-Signature")                                                         \
    HEADER(COLUMNS, "Probing-Columns")                                                             \
    HEADER(PROCESS, "Probing-Process")                                                             \
    HEADER(LOST_HEADER, "Probing-Lost")                                                            \
    HEADER(MESSAGE_ID, "Nats-Msg-Id")                                                              \
    HEADER(SEQUENCE, "Nats-Sequence")                                                              \
    HEADER(TIME_STAMP, "Nats-Time-Stamp")                                                          \
    HEADER(STREAM_SUBJECT_HEADER, "Nats-Subject")
enum prb_bus_header {
#define HEADER(name, text) PRB_BUS_##name,
    PRB_BUS_HEADERS(HEADER)
#undef HEADER
        PRB_BUS_HEADER_COUNT
};

struct prb_bus_message {
    const char *subject, *reply;               /* reply: NULL: none is wanted */
    const char *headers[PRB_BUS_HEADER_COUNT]; /* NULL: none of that name */
    const char *data;
    size_t len;
    bool nobody; /* the server says that nobody listens there */
    void *held;  /* by prb_bus_message_free */
};
void prb_bus_message_free(struct prb_bus_message *message);

bool prb_bus_publish(struct prb_bus *bus, const struct prb_bus_message *message,
                     struct prb_error *err);
/* Until the server has what was published.  s */
bool prb_bus_flush(struct prb_bus *bus, double seconds, struct prb_error *err);

/* What comes on a subject; given on a thread of libnats, which must not wait. */
struct prb_bus_subscription;
typedef void prb_bus_fn(void *context, const struct prb_bus_message *message);
struct prb_bus_subscription *prb_bus_subscribe(struct prb_bus *bus, const char *subject,
                                               prb_bus_fn *fn, void *context,
                                               struct prb_error *err) PRB_MUST_CHECK;
void prb_bus_unsubscribe(struct prb_bus_subscription *subscription);
/* The same; gone: nothing more is given to context, which may be freed then.  On any thread. */
void prb_bus_unsubscribe_then(struct prb_bus_subscription *subscription,
                              void (*gone)(void *context));

/* A new subject that this connection may hear, and that others may reply to. */
bool prb_bus_own_subject(const struct prb_bus *bus, char out[PRB_BUS_OWN], struct prb_error *err);

/* A place for replies. */
struct prb_bus_inbox;
struct prb_bus_inbox *prb_bus_inbox_new(struct prb_bus *bus, struct prb_error *err) PRB_MUST_CHECK;
void prb_bus_inbox_free(struct prb_bus_inbox *inbox);
PRB_DEFINE_AUTO_PTR(prb_bus_inbox, struct prb_bus_inbox, prb_bus_inbox_free)
/* Where to reply; tag: what is told apart by prb_bus_inbox_tag of a message. */
void prb_bus_inbox_subject(const struct prb_bus_inbox *inbox, unsigned tag,
                           char out[PRB_BUS_SUBJECT]);
unsigned prb_bus_inbox_tag(const struct prb_bus_inbox *inbox, const char *subject);
/* The next message within so many seconds, which the caller frees.  False: none came (TIMEOUT), or
 * the connection is closed (IO). */
bool prb_bus_inbox_next(struct prb_bus_inbox *inbox, double seconds, struct prb_bus_message *out,
                        struct prb_error *err);

/* ---- subjects ---- */

/* JOB and HOST are tokens; CLASS is look, control or eval.  A host's agent hears that of all, of
 * its shard, its own, and those of its ranks. */
#define PRB_BUS_ALL "probing.v1.%s.%s.all"
#define PRB_BUS_SHARD "probing.v1.%s.%s.s%02u"
#define PRB_BUS_HOST "probing.v1.%s.%s.h.%s"
#define PRB_BUS_RANK "probing.v1.%s.%s.r.%d"
#define PRB_BUS_CANCEL "probing.v1.%s.cancel"
#define PRB_BUS_STREAM_SUBJECT "probing.v1.%s.eval.stream.%s" /* its id; numbered bytes */
#define PRB_BUS_SHARDS 64
unsigned prb_bus_shard(const char *host);

/* A-Za-z0-9_- stay, any other byte is "=XX". */
void prb_bus_token(const char *name, char out[PRB_BUS_TOKEN]);

/* ---- a long body in parts (parts.c) ---- */

/* Packed when that makes it smaller, cut, and sent to message->subject with its headers. */
bool prb_bus_publish_parts(struct prb_bus *bus, const struct prb_bus_message *message,
                           struct prb_error *err);
/* The parts of one body that have come; begins as {0}. */
struct prb_bus_parts {
    struct prb_bus_message *items;
    unsigned count, got;
    size_t bytes;
};
void prb_bus_parts_deinit(struct prb_bus_parts *parts);
PRB_DEFINE_AUTO(prb_bus_parts, struct prb_bus_parts, prb_bus_parts_deinit)
/* Takes the message over, also on failure.  *whole: all are there, and the body is in out.  Errors:
 * CORRUPT (numbers that contradict each other, a part twice, more than most bytes). */
bool prb_bus_parts_add(struct prb_bus_parts *parts, struct prb_bus_message *message, size_t most,
                       struct prb_buf *out, bool *whole, struct prb_error *err);

#endif
