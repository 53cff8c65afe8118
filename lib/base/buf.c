/* Growing buffer and arena. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

void prb_buf_deinit(struct prb_buf *buf)
{
    free(buf->data);
    *buf = (struct prb_buf){0};
}

char *prb_buf_reserve(struct prb_buf *buf, size_t n)
{
    if (buf->failed || n >= SIZE_MAX / 2 - buf->len) {
        buf->failed = true;
        return NULL;
    }
    size_t need = buf->len + n + 1;
    if (need > buf->cap) {
        size_t cap = buf->cap ? buf->cap : 64;
        while (cap < need)
            cap *= 2;
        char *data = realloc(buf->data, cap);
        if (!data) {
            buf->failed = true;
            return NULL;
        }
        buf->data = data;
        buf->cap = cap;
    }
    return buf->data + buf->len;
}

void prb_buf_add(struct prb_buf *buf, const void *data, size_t n)
{
    char *room = prb_buf_reserve(buf, n);
    if (!room)
        return;
    if (n)
        memcpy(room, data, n);
    buf->len += n;
    buf->data[buf->len] = '\0';
}

void prb_buf_adds(struct prb_buf *buf, const char *text) { prb_buf_add(buf, text, strlen(text)); }

void prb_buf_addc(struct prb_buf *buf, char c) { prb_buf_add(buf, &c, 1); }

void prb_buf_addf(struct prb_buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *room = n < 0 ? NULL : prb_buf_reserve(buf, (size_t)n);
    if (room) {
        vsnprintf(room, (size_t)n + 1, format, again);
        buf->len += (size_t)n;
    }
    va_end(again);
}

void prb_buf_add_utf8(struct prb_buf *buf, unsigned c)
{
    char out[4];
    size_t n;
    if (c < 0x80) {
        out[0] = (char)c;
        n = 1;
    } else if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        n = 2;
    } else if (c >= 0xd800 && c < 0xe000) {
        prb_buf_addf(buf, "\\u%04x", c);
        return;
    } else if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        n = 3;
    } else if (c < 0x110000) {
        out[0] = (char)(0xf0 | c >> 18);
        out[1] = (char)(0x80 | (c >> 12 & 0x3f));
        out[2] = (char)(0x80 | (c >> 6 & 0x3f));
        out[3] = (char)(0x80 | (c & 0x3f));
        n = 4;
    } else {
        prb_buf_adds(buf, "\xef\xbf\xbd");
        return;
    }
    prb_buf_add(buf, out, n);
}

char *prb_buf_steal(struct prb_buf *buf)
{
    if (!buf->failed && !buf->data)
        prb_buf_add(buf, "", 0);
    char *text = buf->failed ? NULL : buf->data;
    if (!text)
        free(buf->data);
    *buf = (struct prb_buf){0};
    return text;
}

struct prb_arena_block {
    struct prb_arena_block *next;
    size_t used, cap;
    _Alignas(max_align_t) char data[];
};

#define ARENA_BLOCK 8192

void prb_arena_deinit(struct prb_arena *arena)
{
    while (arena->blocks) {
        struct prb_arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}

void *prb_arena_alloc(struct prb_arena *arena, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    if (size > SIZE_MAX / 2)
        return NULL;
    size = size ? (size + align - 1) & ~(align - 1) : align;
    struct prb_arena_block *block = arena->blocks;
    if (!block || block->cap - block->used < size) {
        size_t cap = size > ARENA_BLOCK ? size : ARENA_BLOCK;
        block = malloc(sizeof *block + cap);
        if (!block)
            return NULL;
        block->next = arena->blocks;
        block->used = 0;
        block->cap = cap;
        arena->blocks = block;
    }
    void *piece = block->data + block->used;
    block->used += size;
    return memset(piece, 0, size);
}

char *prb_arena_strndup(struct prb_arena *arena, const char *text, size_t len)
{
    char *copy = prb_arena_alloc(arena, len + 1);
    if (copy && len)
        memcpy(copy, text, len);
    return copy;
}

char *prb_arena_strdup(struct prb_arena *arena, const char *text)
{
    return prb_arena_strndup(arena, text, strlen(text));
}

char *prb_arena_printf(struct prb_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 ? NULL : prb_arena_alloc(arena, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

bool prb_grow_(void **array, size_t size, size_t count, size_t *cap)
{
    if (count < *cap)
        return true;
    size_t more = *cap ? *cap * 2 : 16;
    if (more > SIZE_MAX / size)
        return false;
    void *grown = realloc(*array, more * size);
    if (!grown)
        return false;
    *array = grown;
    *cap = more;
    return true;
}
