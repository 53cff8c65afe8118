/* Protocol buffers' wire format: see protobuf.h. */
#include "base/protobuf.h"

#include <string.h>

enum { VARINT, FIXED64, BYTES, FIXED32 = 5 };

static void put_key(struct prb_buf *out, unsigned field, unsigned type)
{
    prb_proto_varint(out, (uint64_t)field << 3 | type);
}

/* Lowest byte first, whatever the machine has. */
static void put_fixed(struct prb_buf *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        prb_buf_addc(out, (char)(value >> 8 * i));
}

void prb_proto_varint(struct prb_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        prb_buf_addc(out, (char)(value | 0x80));
    prb_buf_addc(out, (char)value);
}

void prb_proto_number(struct prb_buf *out, unsigned field, uint64_t value)
{
    put_key(out, field, VARINT);
    prb_proto_varint(out, value);
}

void prb_proto_bytes(struct prb_buf *out, unsigned field, const void *data, size_t len)
{
    put_key(out, field, BYTES);
    prb_proto_varint(out, len);
    prb_buf_add(out, data, len);
}

void prb_proto_text(struct prb_buf *out, unsigned field, const char *text)
{
    prb_proto_bytes(out, field, text, strlen(text));
}

void prb_proto_fixed64(struct prb_buf *out, unsigned field, uint64_t value)
{
    put_key(out, field, FIXED64);
    put_fixed(out, value, sizeof value);
}

void prb_proto_double(struct prb_buf *out, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    prb_proto_fixed64(out, field, bits);
}

void prb_proto_float(struct prb_buf *out, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(out, field, FIXED32);
    put_fixed(out, bits, sizeof bits);
}

void prb_proto_message(struct prb_buf *out, unsigned field, struct prb_buf *message)
{
    out->failed |= message->failed;
    prb_proto_bytes(out, field, message->data, message->len);
    message->len = 0;
}
