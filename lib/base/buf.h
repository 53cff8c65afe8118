/*
 * A growing byte buffer, and an arena whose strings live until it is released.  Out of memory is
 * sticky: appends after it do nothing, so one prb_buf_ok() at the end is enough.
 */
#ifndef PRB_BASE_BUF_H
#define PRB_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct prb_buf {
    char *data; /* NUL-terminated whenever non-NULL; the NUL is not counted */
    size_t len, cap;
    bool failed;
};

void prb_buf_deinit(struct prb_buf *buf);
PRB_DEFINE_AUTO(prb_buf, struct prb_buf, prb_buf_deinit)

/* Room for n more bytes; returns where they go (len is not moved), or NULL when out of memory. */
char *prb_buf_reserve(struct prb_buf *buf, size_t n);
void prb_buf_add(struct prb_buf *buf, const void *data, size_t n);
void prb_buf_adds(struct prb_buf *buf, const char *text);
void prb_buf_addc(struct prb_buf *buf, char c);
void prb_buf_addf(struct prb_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The code point in UTF-8.  Lone surrogates (U+D800..DFFF) are written as "\udc80" and the like. */
void prb_buf_add_utf8(struct prb_buf *buf, unsigned code_point);
static inline bool prb_buf_ok(const struct prb_buf *buf) { return !buf->failed; }
/* The text, owned by the caller now (free it); the buffer is empty after.  NULL when out of
 * memory. */
char *prb_buf_steal(struct prb_buf *buf);

/* An arena: pieces are freed together.  All functions return NULL when out of memory. */
struct prb_arena_block;
struct prb_arena {
    struct prb_arena_block *blocks;
};

void prb_arena_deinit(struct prb_arena *arena);
PRB_DEFINE_AUTO(prb_arena, struct prb_arena, prb_arena_deinit)

/* Zeroed, aligned for any type. */
void *prb_arena_alloc(struct prb_arena *arena, size_t size);
char *prb_arena_strndup(struct prb_arena *arena, const char *text, size_t len);
char *prb_arena_strdup(struct prb_arena *arena, const char *text);
char *prb_arena_printf(struct prb_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Grow a heap array for one more element; doubles.  False when out of memory (the array stays
 * valid). */
#define PRB_GROW(array, count, cap) prb_grow_((void **)&(array), sizeof *(array), (count), &(cap))
bool prb_grow_(void **array, size_t size, size_t count, size_t *cap);

#endif
