/*
 * Messages of protocol.h as bytes: taking them apart (any bytes are safe) and putting them
 * together. Used by both sides.  Both architectures are little endian, so numbers are copied
 * as they are.
 */
#ifndef PRB_PROBE_SERVER_MESSAGE_H
#define PRB_PROBE_SERVER_MESSAGE_H

#include "base/buf.h"
#include "inject/probe/server/protocol.h"

/* One message; body is borrowed from the bytes it was taken from. */
struct prb_message {
    uint16_t type;
    uint32_t
        request; /* 0 only in an answer that belongs to no request: the connection was refused */
    const uint8_t *body;
    size_t len;
};

enum prb_taken { PRB_TAKEN, PRB_TAKEN_MORE /* bytes are missing */, PRB_TAKEN_MALFORMED };

/* The message that bytes begin with; used_out: how many bytes it took.  TAKEN means: its length is
 * bounded, every field lies within it and numbers have eight bytes. */
enum prb_taken prb_message_take(const uint8_t *bytes, size_t len, struct prb_message *out,
                                size_t *used_out);

/* The first field of a key.  False: there is none, *out is left alone. */
bool prb_message_number(const struct prb_message *message, enum prb_message_field key,
                        uint64_t *out);
/* text is not terminated; it may hold any bytes. */
bool prb_message_text(const struct prb_message *message, enum prb_message_field key,
                      const char **text, size_t *len);
/* The same into out, cut to cap - 1 bytes, with a NUL at its end; "" when there is none. */
void prb_message_text_into(const struct prb_message *message, enum prb_message_field key, char *out,
                           size_t cap);
/* A heap copy with a NUL at its end; "" when there is none; NULL when out of memory. */
char *prb_message_copy(const struct prb_message *message, enum prb_message_field key);

/* Append fields to a body that is being made. */
void prb_fields_number(struct prb_buf *body, enum prb_message_field key, uint64_t value);
void prb_fields_text(struct prb_buf *body, enum prb_message_field key, const char *text,
                     size_t len);
/* Append a whole message; fields NULL: none. */
void prb_message_add(struct prb_buf *out, enum prb_message_type type, uint32_t request,
                     const struct prb_buf *fields);

#endif
