/* See postgres_rows.h; "Binary Format" of PostgreSQL's COPY. */
#include "fleet/history/postgres_rows.h"

#include <endian.h>
#include <string.h>

const char prb_postgres_copy_begins[19] = {'P', 'G', 'C', 'O', 'P', 'Y', '\n', '\377', '\r', '\n'};

static void add_length(struct prb_buf *out, int32_t bytes)
{
    uint32_t big = htobe32((uint32_t)bytes);
    prb_buf_add(out, &big, sizeof big);
}

/* -1 is NULL's. */
static void add_null(struct prb_buf *out) { add_length(out, -1); }

static void add_eight(struct prb_buf *out, uint64_t value)
{
    const struct {
        uint32_t len, high, low;
    } big = {htobe32(8), htobe32((uint32_t)(value >> 32)), htobe32((uint32_t)value)};
    prb_buf_add(out, &big, sizeof big);
}

void prb_postgres_add_integer(struct prb_buf *out, int64_t value)
{
    add_eight(out, (uint64_t)value);
}

static void add_real(struct prb_buf *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_eight(out, bits);
}

/* A text has no NUL there: the sign for it. */
void prb_postgres_add_text(struct prb_buf *out, const char *text, size_t len)
{
    static const char sign[] = "\xe2\x90\x80";
    size_t nuls = 0;
    for (const char *at = text; (at = memchr(at, '\0', len - (size_t)(at - text))); at++)
        nuls++;
    add_length(out, (int32_t)(len + nuls * (sizeof sign - 2)));
    for (; nuls; nuls--) {
        size_t plain = strlen(text);
        prb_buf_add(out, text, plain);
        prb_buf_adds(out, sign);
        text += plain + 1;
        len -= plain + 1;
    }
    prb_buf_add(out, text, len);
}

static void add_boolean(struct prb_buf *out, bool value)
{
    add_length(out, 1);
    prb_buf_addc(out, (char)value);
}

void prb_postgres_add_value(struct prb_buf *out, enum prb_ring_type type,
                            const struct prb_ring_value *value)
{
    if (value->null)
        add_null(out);
    else if (type == PRB_RING_INTEGER)
        prb_postgres_add_integer(out, value->integer);
    else if (type == PRB_RING_BOOLEAN)
        add_boolean(out, value->integer != 0);
    else if (type == PRB_RING_TEXT)
        prb_postgres_add_text(out, value->text, value->len);
    else
        add_real(out, value->real);
}
