/* A body that is longer than a message: see bus.h. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "config.h"
#include "fleet/bus/bus.h"
#include "fleet/settings.h"

#define PARTS_MAX 4096
#define WORTH 1024 /* bytes from which packing pays */
#define LEVEL 1
#define PACKED "zstd"

/* ---- packing ---- */

#ifdef PRB_SONAME_ZSTD

#include <zstd.h>

#include "base/lazy.h"

#define FUNCTIONS(F)                                                                               \
    F(ZSTD_compressBound)                                                                          \
    F(ZSTD_compress)                                                                               \
    F(ZSTD_isError)                                                                                \
    F(ZSTD_getFrameContentSize)                                                                    \
    F(ZSTD_decompress)
static struct {
    FUNCTIONS(PRB_LAZY_POINTER)
} zstd;
static const char *const names[] = {FUNCTIONS(PRB_LAZY_NAME)};
static struct prb_lazy library = {PRB_SONAME_ZSTD, names, &zstd, sizeof names / sizeof *names,
                                  false};

/* False: it is sent as it is. */
static bool pack(const char *data, size_t len, struct prb_buf *out)
{
    if (len < WORTH || !prb_lazy_open(&library, NULL))
        return false;
    size_t room = zstd.ZSTD_compressBound(len);
    char *to = prb_buf_reserve(out, room);
    size_t got = to ? zstd.ZSTD_compress(to, room, data, len, LEVEL) : 0;
    if (!to || zstd.ZSTD_isError(got) || got >= len)
        return false;
    out->len += got;
    return true;
}

static bool unpack(const char *data, size_t len, size_t most, struct prb_buf *out,
                   struct prb_error *err)
{
    if (!prb_lazy_open(&library, err))
        return false;
    unsigned long long size = zstd.ZSTD_getFrameContentSize(data, len);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > most)
        return prb_fail(err, PRB_CORRUPT, "a reply is packed wrongly, or too large");
    char *to = prb_buf_reserve(out, (size_t)size + 1);
    if (!to)
        return prb_nomem(err);
    size_t got = zstd.ZSTD_decompress(to, (size_t)size, data, len);
    if (zstd.ZSTD_isError(got) || got != size)
        return prb_fail(err, PRB_CORRUPT, "a reply cannot be unpacked");
    to[got] = '\0';
    out->len += got;
    return true;
}

#else

static bool pack(const char *data, size_t len, struct prb_buf *out)
{
    (void)data, (void)len, (void)out;
    return false;
}

static bool unpack(const char *data, size_t len, size_t most, struct prb_buf *out,
                   struct prb_error *err)
{
    (void)data, (void)len, (void)most, (void)out;
    return prb_fail(err, PRB_UNSUPPORTED, "this probing was built without zstd, and hosts have it");
}

#endif

/* ---- cutting ---- */

bool prb_bus_publish_parts(struct prb_bus *bus, const struct prb_bus_message *message,
                           struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf packed = {0};
    struct prb_bus_message one = *message;
    char part[32];
    const char *data = message->data;
    size_t len = message->len, most = (size_t)prb_fleet_setting(PRB_FLEET_part_bytes);
    if (pack(data, len, &packed)) {
        data = packed.data;
        len = packed.len;
        one.headers[PRB_BUS_PACKED] = PACKED;
    }
    size_t count = len ? (len + most - 1) / most : 1;
    if (count > PARTS_MAX)
        return prb_fail(err, PRB_INTERNAL, "a reply of %zu bytes is too large", len);
    for (size_t i = 0; i < count; i++) {
        size_t from = i * most, left = len - from;
        snprintf(part, sizeof part, "%zu/%zu", i + 1, count);
        one.headers[PRB_BUS_PART_HEADER] = part;
        one.data = data + from;
        one.len = left < most ? left : most;
        if (!prb_bus_publish(bus, &one, err))
            return false;
    }
    return true;
}

/* ---- joining ---- */

void prb_bus_parts_deinit(struct prb_bus_parts *parts)
{
    for (unsigned i = 0; i < parts->count; i++)
        prb_bus_message_free(&parts->items[i]);
    free(parts->items);
    *parts = (struct prb_bus_parts){0};
}

/* "2/5": the second of five. */
static bool take_place(const char *text, unsigned *index_out, unsigned *count_out)
{
    char *end;
    if (!text)
        text = "1/1";
    unsigned long index = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    if (!index || *end != '/' || end[1] < '0' || end[1] > '9')
        return false;
    unsigned long count = strtoul(end + 1, &end, 10);
    *index_out = (unsigned)index - 1;
    *count_out = (unsigned)count;
    return !*end && count <= PARTS_MAX && index <= count;
}

static bool join(struct prb_bus_parts *parts, size_t most, struct prb_buf *out,
                 struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf all = {0};
    const char *packed = parts->items[0].headers[PRB_BUS_PACKED];
    for (unsigned i = 0; i < parts->count; i++)
        prb_buf_add(packed ? &all : out, parts->items[i].data, parts->items[i].len);
    if (!prb_buf_ok(&all) || !prb_buf_ok(out))
        return prb_nomem(err);
    if (!packed)
        return true;
    if (strcmp(packed, PACKED) != 0)
        return prb_fail(err, PRB_UNSUPPORTED, "a reply is packed by \"%.20s\"", packed);
    return unpack(all.data ? all.data : "", all.len, most, out, err);
}

static bool add(struct prb_bus_parts *parts, struct prb_bus_message *message, size_t most,
                struct prb_error *err)
{
    unsigned index, count;
    if (!take_place(message->headers[PRB_BUS_PART_HEADER], &index, &count))
        return prb_fail(err, PRB_CORRUPT, "a part of a reply has no place");
    if (!parts->items) {
        if (!(parts->items = calloc(count, sizeof *parts->items)))
            return prb_nomem(err);
        parts->count = count;
    }
    if (count != parts->count || parts->items[index].subject || message->len > most - parts->bytes)
        return prb_fail(err, PRB_CORRUPT, "the parts of a reply contradict each other");
    parts->items[index] = *message;
    parts->bytes += message->len;
    parts->got++;
    *message = (struct prb_bus_message){0};
    return true;
}

bool prb_bus_parts_add(struct prb_bus_parts *parts, struct prb_bus_message *message, size_t most,
                       struct prb_buf *out, bool *whole, struct prb_error *err)
{
    *whole = false;
    if (!add(parts, message, most, err)) {
        prb_bus_message_free(message);
        return false;
    }
    if (parts->got < parts->count)
        return true;
    return *whole = join(parts, most, out, err);
}
