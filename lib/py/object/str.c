/*
 * Strings and bytes: every storage of PEP 393, the legacy one up to 3.11 too, and their repr.
 * Source: Include/cpython/unicodeobject.h; unicode_repr() in Objects/unicodeobject.c,
 * PyBytes_Repr() in bytesobject.c.
 */
#include <inttypes.h>
#include <string.h>

#include "py/object/reader.h"

/* ---- where the characters are ---- */

enum { KIND_BITS = 7 };

/* Legacy strings (kind 0) hold wchar_t, which is 4 bytes wide on Linux. */
static bool open_legacy(struct prb_objects *objects, prb_addr object, struct prb_str *out)
{
    out->width = 4;
    return PRB_GET(objects, object, str, wstr, &out->data) &&
           PRB_GET(objects, object, str, wstr_length, &out->length);
}

bool prb_str_open(struct prb_objects *objects, prb_addr object, struct prb_str *out,
                  struct prb_error *err)
{
    const struct prb_layout *layout = objects->layout;
    uint64_t state;
    bool good = PRB_GET(objects, object, str, state, &state) &&
                PRB_GET(objects, object, str, length, &out->length);
    if (good) {
        state >>= PRB_NUM(layout, str_interned_bits) < 0 ? 2 : PRB_NUM(layout, str_interned_bits);
        bool compact = state >> 3 & 1, ascii = state >> 4 & 1;
        out->width = (unsigned)state & KIND_BITS;
        if (out->width == 0)
            good = open_legacy(objects, object, out);
        else if (!compact)
            good = PRB_GET(objects, object, str, data, &out->data);
        else
            out->data = object + (uint64_t)(ascii ? PRB_OFF(layout, str, ascii_data)
                                                  : PRB_OFF(layout, str, compact_data));
    }
    if (!good || (out->width != 1 && out->width != 2 && out->width != 4) ||
        out->length > INT64_MAX / 4)
        return prb_fail_addr(err, object, "the string at 0x%" PRIx64 " cannot be read", object);
    return true;
}

/* Append n bytes of memory. */
static bool copy(struct prb_objects *objects, prb_addr addr, size_t n, struct prb_buf *out)
{
    while (n) {
        size_t piece = n < 4096 ? n : 4096;
        const void *bytes = prb_objects_get(objects, addr, piece);
        if (!bytes)
            return false;
        prb_buf_add(out, bytes, piece);
        addr += piece;
        n -= piece;
    }
    return prb_buf_ok(out);
}

/* The first max characters, as they lie in memory; *count_out of them. */
static bool read_prefix(struct prb_objects *objects, prb_addr object, size_t max,
                        struct prb_str *str, struct prb_buf *out, size_t *count_out,
                        struct prb_error *err)
{
    if (!prb_str_open(objects, object, str, err))
        return false;
    size_t count = str->length < max ? (size_t)str->length : max;
    if (!copy(objects, str->data, count * str->width, out))
        return prb_fail_addr(
            err, str->data, "the characters of the string at 0x%" PRIx64 " cannot be read", object);
    *count_out = count;
    return true;
}

static uint32_t character(const struct prb_buf *raw, unsigned width, size_t i)
{
    uint16_t two;
    uint32_t four;
    if (width == 1)
        return (uint8_t)raw->data[i];
    if (width == 2) {
        memcpy(&two, raw->data + 2 * i, 2);
        return two;
    }
    memcpy(&four, raw->data + 4 * i, 4);
    return four;
}

/* ---- plain text ---- */

bool prb_object_str(struct prb_objects *objects, prb_addr object, size_t max, struct prb_buf *out,
                    struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, object, err);
    if (!type)
        return false;
    if (type->kind != PRB_OBJ_STR)
        return prb_fail(err, PRB_CORRUPT, "not a str but a %s at 0x%" PRIx64, type->name, object);
    PRB_AUTO(prb_buf) struct prb_buf raw = {0};
    struct prb_str str;
    size_t count = 0;
    if (max > SIZE_MAX / 8)
        max = SIZE_MAX / 8;
    if (!read_prefix(objects, object, max, &str, &raw, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        prb_buf_add_utf8(out, character(&raw, str.width, i));
    return true;
}

const char *prb_objects_strdup(struct prb_objects *objects, prb_addr str, size_t max)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_object_str(objects, str, max, &text, NULL) || !prb_buf_ok(&text))
        return NULL;
    return prb_arena_strndup(&objects->arena, text.data ? text.data : "", text.len);
}

bool prb_str_equals(struct prb_objects *objects, prb_addr object, const char *text)
{
    uint64_t length;
    struct prb_str str;
    size_t n = strlen(text);
    if (!PRB_GET(objects, object, str, length, &length) || length != n)
        return false;
    struct prb_object_type *type = prb_type_of(objects, object, NULL);
    if (!type || type->kind != PRB_OBJ_STR || !prb_str_open(objects, object, &str, NULL) ||
        str.width != 1)
        return false;
    const void *bytes = n ? prb_objects_get(objects, str.data, n) : "";
    return bytes && !memcmp(bytes, text, n);
}

/* ---- repr ---- */

struct range {
    uint32_t first, last;
};
static const struct range unprintable[] = {
#define RANGE(first, last) {first, last},
#include "py/object/unprintable.def"
#undef RANGE
};

static bool is_printable(uint32_t c)
{
    if (c < 0x7f)
        return c >= ' ';
    size_t low = 0, high = sizeof unprintable / sizeof *unprintable;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (unprintable[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return c != 0x7f && c < 0x110000 && unprintable[low].first > c;
}

static void write_escaped(struct prb_text *text, uint32_t c, char quote)
{
    const char *short_form = c == '\t'   ? "\\t"
                             : c == '\n' ? "\\n"
                             : c == '\r' ? "\\r"
                             : c == '\\' ? "\\\\"
                                         : NULL;
    if (short_form)
        prb_text_add(text, short_form);
    else if (c == (uint32_t)quote)
        prb_text_addf(text, "\\%c", quote);
    else if (is_printable(c))
        prb_text_char(text, c);
    else
        prb_text_addf(text, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
}

/* How many characters from the i-th on stand for themselves, one byte each. */
static size_t plain_run(const struct prb_buf *raw, size_t i, size_t count, char quote)
{
    size_t n = 0;
    for (; i + n < count; n++) {
        unsigned char c = (unsigned char)raw->data[i + n];
        if (c < ' ' || c >= 0x7f || c == '\\' || c == (unsigned char)quote)
            break;
    }
    return n;
}

/* Of a longer text only so much is searched for quotes, even if less of it fits. */
#define QUOTES_WITHIN 4096

/* Characters that fit, and as many more as the choice of quotes wants and memory has. */
static bool read_for_text(struct prb_objects *objects, prb_addr data, uint64_t length,
                          unsigned width, const struct prb_text *text, struct prb_buf *out,
                          size_t *count_out)
{
    size_t room = prb_text_room(text), wanted = room > QUOTES_WITHIN ? room : QUOTES_WITHIN;
    room = length < room ? (size_t)length : room;
    wanted = length < wanted ? (size_t)length : wanted;
    if (!copy(objects, data, room * width, out))
        return false;
    *count_out = room;
    if (copy(objects, data + room * width, (wanted - room) * width, out))
        *count_out = wanted;
    return true;
}

/* Single quotes, unless the text has those and no double ones. */
static char choose_quote(const struct prb_buf *raw, unsigned width, size_t count)
{
    bool single = false, double_ = false;
    for (size_t i = 0; i < count; i++) {
        uint32_t c = character(raw, width, i);
        single |= c == '\'';
        double_ |= c == '"';
    }
    return single && !double_ ? '"' : '\'';
}

bool prb_str_write(struct prb_objects *objects, prb_addr object, struct prb_text *text,
                   struct prb_error *err)
{
    struct prb_str str;
    return prb_str_open(objects, object, &str, err) &&
           (prb_characters_write(objects, &str, text) ||
            prb_fail_addr(err, str.data,
                          "the characters of the string at 0x%" PRIx64 " cannot be read", object));
}

bool prb_characters_write(struct prb_objects *objects, const struct prb_str *str,
                          struct prb_text *text)
{
    PRB_AUTO(prb_buf) struct prb_buf raw = {0};
    size_t count = 0;
    if (!read_for_text(objects, str->data, str->length, str->width, text, &raw, &count))
        return false;
    char quote = choose_quote(&raw, str->width, count);
    prb_text_char(text, (unsigned)quote);
    for (size_t i = 0; i < count && !text->full; i++) {
        size_t run = str->width == 1 ? plain_run(&raw, i, count, quote) : 0;
        prb_text_ascii(text, raw.data + i, run);
        i += run;
        if (i < count)
            write_escaped(text, character(&raw, str->width, i), quote);
    }
    /* A cut text has at least one character too many now, so that what follows is cut too. */
    prb_text_char(text, (unsigned)quote);
    return true;
}

bool prb_bytes_open(struct prb_objects *objects, prb_addr object, enum prb_object_kind kind,
                    prb_addr *data_out, uint64_t *length_out, struct prb_error *err)
{
    bool good;
    if (kind == PRB_OBJ_BYTES) {
        good = PRB_GET(objects, object, bytes, size, length_out);
        *data_out = object + (uint64_t)PRB_OFF(objects->layout, bytes, data);
    } else {
        good = PRB_GET(objects, object, bytearray, size, length_out) &&
               PRB_GET(objects, object, bytearray, start, data_out);
    }
    if (!good || *length_out > INT64_MAX)
        return prb_fail_addr(err, object, "the bytes at 0x%" PRIx64 " cannot be read", object);
    return true;
}

bool prb_bytes_write(struct prb_objects *objects, prb_addr object, enum prb_object_kind kind,
                     struct prb_text *text, struct prb_error *err)
{
    prb_addr data;
    uint64_t length;
    return prb_bytes_open(objects, object, kind, &data, &length, err) &&
           (prb_raw_bytes_write(objects, data, length, text) ||
            prb_fail_addr(err, data, "the bytes at 0x%" PRIx64 " cannot be read", object));
}

bool prb_raw_bytes_write(struct prb_objects *objects, prb_addr data, uint64_t length,
                         struct prb_text *text)
{
    PRB_AUTO(prb_buf) struct prb_buf raw = {0};
    size_t count = 0;
    if (!read_for_text(objects, data, length, 1, text, &raw, &count))
        return false;
    char quote = choose_quote(&raw, 1, count);
    prb_text_addf(text, "b%c", quote);
    for (size_t i = 0; i < count && !text->full; i++) {
        uint8_t c = (uint8_t)raw.data[i];
        if (c < 0x7f)
            write_escaped(text, c, quote);
        else
            prb_text_addf(text, "\\x%02x", c);
    }
    prb_text_char(text, (unsigned)quote);
    return true;
}
