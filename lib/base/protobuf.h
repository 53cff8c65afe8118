/*
 * Protocol buffers, as far as a writer needs them: fields of numbers, of fixed size, and of known
 * length (encoding.html of protobuf.dev).  A message is made in a buffer of its own, and then added
 * to the one that holds it.
 */
#ifndef PRB_BASE_PROTOBUF_H
#define PRB_BASE_PROTOBUF_H

#include <stdint.h>

#include "base/buf.h"

void prb_proto_varint(struct prb_buf *out, uint64_t value);
/* A field of type int64, uint64, bool or enum. */
void prb_proto_number(struct prb_buf *out, unsigned field, uint64_t value);
void prb_proto_bytes(struct prb_buf *out, unsigned field, const void *data, size_t len);
void prb_proto_text(struct prb_buf *out, unsigned field, const char *text);
void prb_proto_fixed64(struct prb_buf *out, unsigned field, uint64_t value);
void prb_proto_double(struct prb_buf *out, unsigned field, double value);
void prb_proto_float(struct prb_buf *out, unsigned field, float value);
/* A message as a field; the message is empty after it. */
void prb_proto_message(struct prb_buf *out, unsigned field, struct prb_buf *message);

#endif
