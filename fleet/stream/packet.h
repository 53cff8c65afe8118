/*
 * What travels of a stream: bytes of connections between a host of the asker and the process that
 * serves them beside a rank, as numbered messages of the bus.
 *
 * Header Probing-Stream: "NUMBER KIND CONNECTION PASSED".  NUMBER counts the messages of one side
 * from 1, so that a lost one is noticed; PASSED: bytes of that connection that this side has passed
 * on, which is the window of the other.  The body is data, or why the stream is over.
 *
 * What a debugger sends runs code, so each message says that it is of whom it should be: by an
 * authentication code of a secret that both sides have, when both told a key of their own for this
 * stream (args and answer of "debug"), and the asker's is in what it signed; else, for an agent or an
 * asker of an older release, by a signature of the asker.
 */
#ifndef PRB_FLEET_PACKET_H
#define PRB_FLEET_PACKET_H

#include "fleet/bus/bus.h"

#define PRB_STREAM_ID 33                   /* 16 random bytes in hexadecimal, and a NUL */
#define PRB_STREAM_DATA ((size_t)64 << 10) /* bytes of a message's body at the most */

enum prb_packet_kind {
    PRB_PACKET_ALIVE, /* nothing but PASSED; also so that the other side is not given up */
    PRB_PACKET_OPEN,  /* a connection begins */
    PRB_PACKET_DATA,
    PRB_PACKET_END,  /* nothing more comes on that connection */
    PRB_PACKET_OVER, /* the stream is over; the body says why, or nothing */
    PRB_PACKET_KINDS,
};

struct prb_packet {
    struct prb_packet *next;
    uint64_t number, passed;
    unsigned connection; /* from 1; 0: none */
    enum prb_packet_kind kind;
    bool nobody; /* the server says that the other side is not there; nothing else is set */
    bool wrong;  /* it cannot be parsed */
    char text[80], signature[2 * PRB_NKEY_SIGNATURE + 1];
    char *reply; /* behind the data */
    size_t len;
    char data[];
};

struct prb_packet_way {
    struct prb_bus *bus;
    const char *id, *to, *from;   /* of the stream; subjects */
    const unsigned char *secret;  /* of both sides; NULL: by signatures */
    const struct prb_nkey *key;   /* that signs; NULL: not signed */
    const unsigned char *trusted; /* whose signature is asked for; NULL: nobody's */
};

/* Send one; number, kind, connection, passed, data and len are used. */
bool prb_packet_send(const struct prb_packet_way *way, const struct prb_packet *packet,
                     const char *data, struct prb_error *err);
/* Whether it is of whom it should be.  PERMISSION. */
bool prb_packet_check(const struct prb_packet_way *way, const struct prb_packet *packet,
                      struct prb_error *err);

/* What has come on a subject, in its order. */
struct prb_mailbox;
struct prb_mailbox *prb_mailbox_new(struct prb_bus *bus, const char *subject, const char *id,
                                    struct prb_error *err) PRB_MUST_CHECK;
void prb_mailbox_free(struct prb_mailbox *box);
/* An eventfd that is readable while there may be something. */
int prb_mailbox_fd(const struct prb_mailbox *box);
/* The next, which the caller frees, or NULL.  *full_out: more came than a mailbox holds. */
struct prb_packet *prb_mailbox_next(struct prb_mailbox *box, bool *full_out);

#endif
