/*
 * The reader of objects: one reading of the target through a page cache (mem/view.h) and a cache of
 * types.  Fields come from the layout; everything read is bounded by the limits of reader.h.
 */
#include <endian.h>
#include <string.h>

#include "py/object/reader.h"

/* A look at some objects needs little of each page they are in; a walk over all objects needs all
 * of it. */
#define FEW_UNIT 1024

struct prb_objects *prb_objects_new(struct prb_py *py, struct prb_error *err)
{
    PRB_AUTO(prb_objects) struct prb_objects *objects = calloc(1, sizeof *objects);
    if (!objects)
        return PRB_NULL(prb_nomem(err));
    objects->py = py;
    objects->layout = &py->layout;
    objects->view = prb_view_new(py->mem, FEW_UNIT, err);
    if (!objects->view)
        return NULL;
    return PRB_STEAL(objects);
}

void prb_objects_free(struct prb_objects *objects)
{
    if (!objects)
        return;
    if (objects->view)
        prb_view_free(objects->view);
    prb_arena_deinit(&objects->arena);
    prb_hash_map_deinit(&objects->types);
    free(objects->texts);
    free(objects);
}

void prb_objects_clear(struct prb_objects *objects)
{
    prb_view_clear(objects->view);
    prb_arena_deinit(&objects->arena);
    prb_hash_map_clear(&objects->types);
    objects->text_count = objects->text_bytes = 0;
    free(objects->texts);
    objects->texts = NULL;
    memset(objects->names, 0, sizeof objects->names);
}

void prb_objects_expect_all(struct prb_objects *objects)
{
    prb_view_set_unit(objects->view, PRB_VIEW_UNIT_MAX);
}

struct prb_py *prb_objects_py(struct prb_objects *objects) { return objects->py; }

/* ---- reading ---- */

const void *prb_objects_get(struct prb_objects *objects, prb_addr addr, size_t len)
{
    if (!addr || !len || len > PRB_VIEW_MAX || addr > UINT64_MAX - len)
        return NULL;
    if (prb_view_bytes(objects->view) >= PRB_CACHED_BYTES_MAX)
        prb_view_clear(objects->view);
    return prb_view_get(objects->view, addr, len);
}

static uint64_t little_endian(const uint8_t *bytes, unsigned width)
{
    uint64_t value = 0;
    memcpy(&value, bytes, width);
    return le64toh(value);
}

bool prb_objects_field(struct prb_objects *objects, prb_addr addr, enum prb_field field,
                       uint64_t *out)
{
    int32_t offset = objects->layout->offset[field];
    unsigned width = prb_field_width(field);
    if (offset == PRB_ABSENT || !width || !addr)
        return false;
    const uint8_t *bytes = prb_objects_get(objects, addr + (uint64_t)(int64_t)offset, width);
    if (!bytes)
        return false;
    *out = little_endian(bytes, width);
    return true;
}

bool prb_objects_words(struct prb_objects *objects, prb_addr addr, uint64_t *out, size_t count)
{
    const uint8_t *bytes =
        count > PRB_VIEW_MAX / 8 ? NULL : prb_objects_get(objects, addr, count * 8);
    if (!bytes)
        return false;
    memcpy(out, bytes, count * 8);
    for (size_t i = 0; i < count; i++)
        out[i] = le64toh(out[i]);
    return true;
}

const char *prb_objects_cstring(struct prb_objects *objects, prb_addr addr, size_t max)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    while (text.len < max) {
        size_t piece =
            64 - addr % 64; /* never crosses a page: the string may end where memory does */
        const char *bytes = prb_objects_get(objects, addr, piece);
        if (!bytes)
            return NULL;
        size_t len = strnlen(bytes, piece);
        prb_buf_add(&text, bytes, len < max - text.len ? len : max - text.len);
        if (len < piece)
            break;
        addr += piece;
    }
    return prb_buf_ok(&text)
               ? prb_arena_strndup(&objects->arena, text.data ? text.data : "", text.len)
               : NULL;
}

#define HEAD_BYTES 64 /* of an object: enough for its type, its size and where the rest is */

void prb_objects_prefetch(struct prb_objects *objects, const uint64_t *addrs, size_t count)
{
    for (size_t i = 0; i < count && prb_view_bytes(objects->view) < PRB_CACHED_BYTES_MAX; i++)
        if (addrs[i] && addrs[i] <= UINT64_MAX - HEAD_BYTES)
            prb_view_prefetch(objects->view, addrs[i], HEAD_BYTES);
}

void prb_objects_make_room(struct prb_objects *objects)
{
    if (prb_view_bytes(objects->view) > PRB_CACHED_BYTES_MAX / 4)
        prb_view_clear(objects->view);
}

bool prb_objects_spend(struct prb_objects *objects, size_t n)
{
    if (objects->steps < n) {
        objects->steps = 0;
        return false;
    }
    objects->steps -= n;
    return true;
}

/* ---- what an object is ---- */

enum prb_object_kind prb_object_kind(struct prb_objects *objects, prb_addr object,
                                     struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, object, err);
    return type ? type->kind : PRB_OBJ_OTHER;
}

bool prb_object_type_name(struct prb_objects *objects, prb_addr object, struct prb_buf *out,
                          struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, object, err);
    if (!type)
        return false;
    prb_type_full_name(objects, type, out);
    return true;
}
