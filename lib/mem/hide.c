/*
 * Hides secrets in bytes.  A bit set, by a hash of three bytes, has the beginnings of every value
 * and every form: at nearly every place it shows that nothing begins there.
 */
#include "mem/hide.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/secret.h"

#define LEAST 4          /* characters; shorter ones stand everywhere */
#define MIXED 6          /* letters alone are sought from here on */
#define ANYWHERE 8       /* also within words from here on */
#define PLAIN_WORD 10    /* up to here small letters may be a word of the language */
#define DIGITS 8         /* numbers are sought from here on */
#define PATH_UNTIL 24    /* up to here what begins with / is a path, whatever its letters */
#define LINE_LEAST 16    /* of a long value each line is sought from here on */
#define USER_LEAST 16    /* the user of a secret URL is sought from here on */
#define PIECE 8          /* bytes of an end that are hidden at a border */
#define BEFORE 4         /* bytes of a word before: the first may be of a header, not of the text */
#define NEEDLES_MAX 4096 /* values, in all forms */
#define WIDE_FIRST 160   /* characters of a wide string that decide whether it is such a form */
#define WIDE_MAX 4096    /* characters of a wide string that are examined */
#define WORDS (65536 / 64)

struct prb_needle {
    uint8_t *bytes;
    size_t len;
    unsigned width; /* of a character, bytes */
    bool alone;     /* only as a whole word */
    uint32_t next;
};

void prb_hidden_deinit(struct prb_hidden *hidden)
{
    for (size_t i = 0; i < hidden->count; i++) {
        explicit_bzero(hidden->items[i].bytes, hidden->items[i].len);
        free(hidden->items[i].bytes);
    }
    free(hidden->items);
    free(hidden->known);
    free(hidden->looks);
    free(hidden->tails);
    free(hidden->table);
}

/* ---- which ---- */

static bool is_word(uint8_t c) { return isalnum(c) || c == '_'; }

static bool all(const char *value, size_t len, int (*is)(int))
{
    for (size_t i = 0; i < len; i++)
        if (!is((unsigned char)value[i]))
            return false;
    return true;
}

static int is_path_char(int c) { return islower(c) || isdigit(c) || (c && strchr("/._-~+", c)); }

static bool is_path(const char *value, size_t len)
{
    bool begins = value[0] == '/' || (value[0] == '~' && value[1] == '/') ||
                  (value[0] == '.' && value[1] == '/');
    return begins && (len <= PATH_UNTIL || all(value, len, is_path_char));
}

static bool is_plain(const char *value, size_t len)
{
    static const char *const plain[] = {
        "true",      "false",      "none",     "null",      "auto",     "default",     "localhost",
        "password",  "passwd",     "secret",   "token",     "changeme", "example",     "public",
        "private",   "session",    "username", "admin",     "python",   "python3",     "disabled",
        "enabled",   "postgres",   "0.0.0.0",  "127.0.0.1", "bearer",   "credentials", "undefined",
        "anonymous", "production", "__main__",
    };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strlen(plain[i]) == len && strncasecmp(plain[i], value, len) == 0)
            return true;
    return false;
}

static bool is_sought(const char *value, size_t len, bool *alone_out)
{
    *alone_out = len < ANYWHERE || (len <= PLAIN_WORD && all(value, len, islower));
    return len >= LEAST && !(len < MIXED && all(value, len, isalpha)) &&
           !(len < DIGITS && all(value, len, isdigit)) && !is_path(value, len) &&
           !is_plain(value, len);
}

static bool is_known(const struct prb_hidden *hidden, const char *value, size_t len)
{
    for (size_t i = 0; i < hidden->count; i++)
        if (hidden->items[i].len == len && memcmp(hidden->items[i].bytes, value, len) == 0)
            return true;
    return false;
}

/* UTF-8 into characters of so many bytes; false: one does not fit, or it is not UTF-8. */
static bool widen(const char *value, size_t len, unsigned width, struct prb_buf *out)
{
    for (size_t i = 0; i < len;) {
        uint8_t lead = (uint8_t)value[i];
        size_t n = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
        uint32_t c = n == 1 ? lead : n ? lead & (0xffu >> (n + 1)) : 0;
        if (!n || n > len - i)
            return false;
        for (size_t k = 1; k < n; k++)
            c = c << 6 | ((uint8_t)value[i + k] & 0x3f);
        if (width < 4 && c >> (8 * width))
            return false;
        prb_buf_add(out, &c, width); /* little-endian, as both arches are */
        i += n;
    }
    return prb_buf_ok(out);
}

static void add_form(struct prb_hidden *hidden, const char *bytes, size_t len, unsigned width,
                     bool alone)
{
    if (is_known(hidden, bytes, len))
        return;
    struct prb_needle needle = {malloc(len), len, width, alone, 0};
    if (!needle.bytes || hidden->count == NEEDLES_MAX ||
        !PRB_GROW(hidden->items, hidden->count, hidden->cap)) {
        free(needle.bytes);
        hidden->failed = true;
        return;
    }
    memcpy(needle.bytes, bytes, len);
    hidden->items[hidden->count++] = needle;
    hidden->longest = len > hidden->longest ? len : hidden->longest;
}

static void add_value(struct prb_hidden *hidden, const char *value, size_t len)
{
    bool alone, ascii = true;
    if (!is_sought(value, len, &alone) || is_known(hidden, value, len))
        return;
    add_form(hidden, value, len, 1, alone);
    for (size_t i = 0; i < len; i++)
        ascii = ascii && !(value[i] & 0x80);
    for (unsigned width = ascii ? 2 : 1; width <= 4; width *= 2) {
        PRB_AUTO(prb_buf) struct prb_buf wide = {0};
        if (widen(value, len, width, &wide))
            add_form(hidden, wide.data, wide.len, width, alone);
        hidden->failed = hidden->failed || !prb_buf_ok(&wide);
    }
}

/* ---- parts ---- */

static void add_decoded(struct prb_hidden *hidden, const char *value, size_t len)
{
    PRB_AUTO(prb_buf) struct prb_buf plain = {0};
    for (size_t i = 0; i < len; i++) {
        const char digits[3] = {i + 2 < len ? value[i + 1] : '\0',
                                i + 2 < len ? value[i + 2] : '\0'};
        bool quoted = value[i] == '%' && isxdigit((unsigned char)digits[0]) &&
                      isxdigit((unsigned char)digits[1]);
        prb_buf_addc(&plain, quoted ? (char)strtol(digits, NULL, 16) : value[i]);
        i += quoted ? 2 : 0;
    }
    hidden->failed = hidden->failed || !prb_buf_ok(&plain);
    if (prb_buf_ok(&plain) && plain.len)
        add_value(hidden, plain.data, plain.len);
}

/* As urllib.parse.quote writes it: letters, digits, _.-~ and what is safe stay as they are. */
static void add_encoded(struct prb_hidden *hidden, const char *value, size_t len, const char *safe)
{
    PRB_AUTO(prb_buf) struct prb_buf quoted = {0};
    for (size_t i = 0; i < len; i++) {
        char c = value[i];
        if (is_word((uint8_t)c) || (c && (strchr("-.~", c) || strchr(safe, c))))
            prb_buf_addc(&quoted, c);
        else
            prb_buf_addf(&quoted, "%%%02X", (unsigned char)c);
    }
    hidden->failed = hidden->failed || !prb_buf_ok(&quoted);
    if (prb_buf_ok(&quoted) && quoted.len)
        add_value(hidden, quoted.data, quoted.len);
}

static void add_all_forms(struct prb_hidden *hidden, const char *value, size_t len)
{
    add_value(hidden, value, len);
    add_decoded(hidden, value, len);
    add_encoded(hidden, value, len, "");
    add_encoded(hidden, value, len, "/");
}

/* Lines end in a line feed, or in \n as JSON and repr write it. */
static void add_lines(struct prb_hidden *hidden, const char *value, size_t len)
{
    for (size_t at = 0, end; at < len; at = end + 1) {
        for (end = at; end < len && value[end] != '\n' && value[end] != '\\' && value[end] != '\r';)
            end++;
        if (end - at >= LINE_LEAST && end - at < len && memcmp(value + at, "-----", 5) != 0)
            add_value(hidden, value + at, end - at);
        if (end + 1 < len && value[end] == '\\')
            end++;
    }
}

/* A URL that is secret as a whole may have its secret in the user: SENTRY_DSN. */
static void add_user(struct prb_hidden *hidden, const char *value, size_t len)
{
    const char *scheme = memmem(value, len, "://", 3), *from = scheme ? scheme + 3 : NULL;
    size_t left = from ? len - (size_t)(from - value) : 0, n = 0;
    while (n < left && !strchr(":@/", from[n]) && from[n])
        n++;
    if (n < left && from[n] != '/' && n >= USER_LEAST)
        add_all_forms(hidden, from, n);
}

struct parts {
    struct prb_hidden *hidden;
    const char *value;
};

static void add_part(void *context, struct prb_span span)
{
    const struct parts *parts = context;
    add_all_forms(parts->hidden, parts->value + span.at, span.len);
    add_lines(parts->hidden, parts->value + span.at, span.len);
}

void prb_hidden_add(struct prb_hidden *hidden, const char *value, size_t len)
{
    struct parts parts = {hidden, value};
    while (len && isspace((unsigned char)value[len - 1]))
        len--;
    if (!len)
        return;
    add_all_forms(hidden, value, len);
    add_lines(hidden, value, len);
    add_user(hidden, value, len);
    prb_secret_each(PRB_SECRET_TEXT, value, len, add_part, &parts);
}

/* ---- tables ---- */

static uint32_t hash_three(uint32_t three) { return three * 0x9e3779b1u >> 16; }

static uint32_t hash_of(const uint8_t *at)
{
    return hash_three((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16);
}

static void set_bit(uint64_t *bits, uint32_t hash) { bits[hash / 64] |= UINT64_C(1) << hash % 64; }
static bool bit(const uint64_t *bits, uint32_t hash) { return bits[hash / 64] >> hash % 64 & 1; }

/* The first three characters of a form, in both cases and all widths: their first three bytes. */
static void set_look(uint64_t *bits, const char *head)
{
    for (unsigned cases = 0; cases < 8; cases++) {
        uint8_t c[3];
        for (unsigned i = 0; i < 3; i++)
            c[i] = (uint8_t)(cases >> i & 1 ? toupper((unsigned char)head[i])
                                            : tolower((unsigned char)head[i]));
        set_bit(bits, hash_of(c));
        set_bit(bits, hash_of((uint8_t[]){c[0], 0, c[1]}));
        set_bit(bits, hash_of((uint8_t[]){c[0], 0, 0}));
    }
}

static bool build(struct prb_hidden *hidden)
{
    free(hidden->known);
    free(hidden->looks);
    free(hidden->tails);
    free(hidden->table);
    hidden->known = calloc(WORDS, sizeof *hidden->known);
    hidden->looks = calloc(WORDS, sizeof *hidden->looks);
    hidden->tails = calloc(WORDS, sizeof *hidden->tails);
    hidden->table = calloc(65536, sizeof *hidden->table);
    if (!hidden->known || !hidden->looks || !hidden->tails || !hidden->table)
        return false;
    for (size_t i = 0; prb_secret_head(i); i++) {
        set_look(hidden->looks, prb_secret_head(i));
        hidden->first[tolower((unsigned char)prb_secret_head(i)[0])] = true;
        hidden->first[toupper((unsigned char)prb_secret_head(i)[0])] = true;
    }
    memcpy(hidden->known, hidden->looks, WORDS * sizeof *hidden->known);
    for (size_t i = 0; i < hidden->count; i++) {
        struct prb_needle *needle = &hidden->items[i];
        uint32_t hash = hash_of(needle->bytes);
        set_bit(hidden->known, hash);
        set_bit(hidden->tails, hash_of(needle->bytes + needle->len - 3));
        needle->next = hidden->table[hash];
        hidden->table[hash] = (uint32_t)i + 1;
    }
    return !hidden->failed;
}

/* ---- bytes ---- */

struct bytes {
    uint8_t *data;
    size_t len;
    bool changed;
};

static void star(struct bytes *bytes, size_t from, size_t to, unsigned width, size_t phase)
{
    for (size_t i = from; i < to; i++)
        bytes->data[i] = (i - phase) % width ? 0 : '*';
    bytes->changed = true;
}

/* The character of so many bytes that begins there is one of a word. */
static bool word_at(const struct bytes *bytes, size_t at, unsigned width)
{
    if (at >= bytes->len || width > bytes->len - at || !is_word(bytes->data[at]))
        return false;
    for (unsigned i = 1; i < width; i++)
        if (bytes->data[at + i])
            return false;
    return true;
}

static bool stands_alone(const struct bytes *bytes, size_t at, const struct prb_needle *needle)
{
    unsigned width = needle->width, before = 0;
    while (before < BEFORE && at >= (before + 1) * width &&
           word_at(bytes, at - (before + 1) * width, width))
        before++;
    return before < BEFORE && !word_at(bytes, at + needle->len, width);
}

/* Returns where the search goes on. */
static size_t hide_known(struct prb_hidden *hidden, struct bytes *bytes, size_t at, uint32_t hash)
{
    size_t left = bytes->len - at, end = at;
    for (uint32_t i = hidden->table[hash]; i; i = hidden->items[i - 1].next) {
        const struct prb_needle *needle = &hidden->items[i - 1];
        size_t n = needle->len < left ? needle->len : left;
        if (n < needle->len && n < PIECE)
            continue;
        if (memcmp(bytes->data + at, needle->bytes, n) == 0 &&
            (!needle->alone || n < needle->len || stands_alone(bytes, at, needle)) && at + n > end)
            end = at + n;
    }
    for (uint32_t i = hidden->table[hash]; i && end > at; i = hidden->items[i - 1].next) {
        const struct prb_needle *needle = &hidden->items[i - 1];
        if (needle->len >= end - at && memcmp(bytes->data + at, needle->bytes, end - at) == 0) {
            star(bytes, at, end, needle->width, at);
            break;
        }
    }
    return end;
}

/* A wide string's characters while they match a form. */
static size_t narrow(const struct bytes *bytes, size_t at, unsigned width, char *out, size_t cap)
{
    size_t n = 0;
    for (; n < cap && at + (n + 1) * width <= bytes->len; n++) {
        const uint8_t *c = bytes->data + at + n * width;
        if (!c[0] || (width > 1 && c[1]) || (width > 2 && (c[2] || c[3])))
            break;
        out[n] = (char)c[0];
    }
    return n;
}

static size_t hide_look(struct bytes *bytes, size_t at)
{
    struct prb_span span;
    char text[WIDE_MAX];
    if (bytes->data[at + 1] && prb_secret_at((const char *)bytes->data, bytes->len, at, &span)) {
        star(bytes, span.at, span.at + span.len, 1, span.at);
        return span.at + span.len;
    }
    for (unsigned width = 2; width <= 4 && !bytes->data[at + 1]; width *= 2) {
        /* The character before decides whether a word begins. */
        size_t before = at >= width && word_at(bytes, at - width, width) ? 1 : 0;
        char three[3];
        if (narrow(bytes, at, width, three, 3) < 3)
            continue;
        /* A short part decides, so that no bytes make this slow. */
        size_t from = at - before * width, n = narrow(bytes, from, width, text, WIDE_FIRST);
        if (!prb_secret_at(text, n, before, &span))
            continue;
        n = n < WIDE_FIRST ? n : narrow(bytes, from, width, text, WIDE_MAX);
        if (prb_secret_at(text, n, before, &span)) {
            size_t first = from + span.at * width;
            star(bytes, first, first + span.len * width, width, first);
            return first + span.len * width;
        }
    }
    return at;
}

/* The end of a value whose beginning is not there. */
static void hide_tail(struct prb_hidden *hidden, struct bytes *bytes)
{
    size_t most = hidden->longest < bytes->len ? hidden->longest : bytes->len;
    for (size_t end = PIECE; end < most; end++) {
        if (!bit(hidden->tails, hash_of(bytes->data + end - 3)))
            continue;
        for (size_t i = 0; i < hidden->count; i++) {
            const struct prb_needle *needle = &hidden->items[i];
            if (needle->len > end &&
                memcmp(bytes->data, needle->bytes + needle->len - end, end) == 0)
                star(bytes, 0, end, needle->width, end % needle->width);
        }
    }
}

#define STEP 6 /* places whose three bytes are within a word of eight */

/* Whether something may begin at one of so many places from there. */
static bool may_begin(const uint64_t *known, const uint8_t *data)
{
    uint64_t word, any = 0;
    memcpy(&word, data, sizeof word);
    if (!word)
        return false;
#pragma GCC unroll 6
    for (unsigned i = 0; i < STEP; i++) {
        uint32_t hash = hash_three((uint32_t)(word >> 8 * i) & 0xffffff);
        any |= known[hash / 64] >> hash % 64;
    }
    return any & 1;
}

static size_t hide_at(struct prb_hidden *hidden, struct bytes *bytes, size_t at)
{
    uint32_t hash = hash_of(bytes->data + at);
    if (!bit(hidden->known, hash))
        return at;
    size_t end = hide_known(hidden, bytes, at, hash);
    return end == at && hidden->first[bytes->data[at]] && bit(hidden->looks, hash)
               ? hide_look(bytes, at)
               : end;
}

static bool hide(struct prb_hidden *hidden, uint8_t *data, size_t len)
{
    struct bytes bytes = {data, len, false};
    if (len < LEAST)
        return false;
    hide_tail(hidden, &bytes);
    for (size_t at = 0; at + 3 <= len;) {
        if (len - at >= sizeof(uint64_t) && !may_begin(hidden->known, data + at)) {
            at += STEP;
            continue;
        }
        size_t stop = at + STEP < len - 2 ? at + STEP : len - 2;
        while (at < stop) {
            size_t end = hide_at(hidden, &bytes, at);
            at = end > at ? end : at + 1;
        }
    }
    return bytes.changed;
}

bool prb_hidden_apply(struct prb_hidden *hidden, void *bytes, size_t len)
{
    if (!hidden->known && !build(hidden)) {
        memset(bytes, '*', len);
        return true;
    }
    return hide(hidden, bytes, len);
}

static bool change(void *context, void *data, size_t len) { return hide(context, data, len); }

bool prb_hidden_record(struct prb_hidden *hidden, struct prb_mem *record)
{
    return (hidden->known || build(hidden)) && prb_mem_record_change(record, change, hidden);
}
