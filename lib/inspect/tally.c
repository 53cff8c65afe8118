/* Objects counted by type: see tally.h. */
#include "inspect/tally.h"

#include <stdlib.h>

#include "base/progress.h"
#include "py/object/reader.h"

/* ---- sizes, as sys.getsizeof() gives them ---- */

enum {
    MANAGED_WEAKREF_BIT = 3,
    DICT_ENTRY = 24,
    UNICODE_ENTRY = 16,
    SET_ENTRY = 16,
    SET_SMALL = 7
};
#define ITEMS_MAX (INT64_C(1) << 32) /* of one object; more cannot be a number of items */

/* What stands before an object: the collector's head; dict and weak references, where managed. */
static int64_t head_bytes(const struct prb_objects *objects, const struct prb_object_type *type)
{
    const struct prb_layout *layout = objects->layout;
    int managed = PRB_NUM(layout, flag_managed_dict_bit);
    uint64_t bits = 0;
    if (managed != PRB_NONE)
        bits = UINT64_C(1) << managed |
               (PRB_IS(layout, instance, VALUES_AND_DICT) ? 0 : 1u << MANAGED_WEAKREF_BIT);
    return PRB_OFF(layout, gc_head, size) + (type->flags & bits ? 16 : 0);
}

static bool is_power_of_two(uint64_t value) { return value && !(value & (value - 1)); }

/* Objects/dictobject.c, new_keys_object: the index of a table of 2^size. */
static uint64_t log2_index_bytes_of(uint64_t size)
{
    return size + (size < 8 ? 0 : size < 16 ? 1 : size < 32 ? 2 : 3);
}

/* The table of a dict that has one of its own.  What contradicts itself was changed meanwhile, and
 * counts nothing: a number of a freed table makes terabytes. */
static int64_t dict_bytes(struct prb_objects *objects, prb_addr object)
{
    const struct prb_layout *layout = objects->layout;
    uint64_t keys, values = 0, size, index_bytes, kind = 0;
    (void)PRB_GET(objects, object, dict, values, &values);
    if (values || !PRB_GET(objects, object, dict, keys, &keys) || !keys)
        return 0;
    int64_t head = PRB_OFF(layout, dict_keys, indices);
    if (PRB_IS(layout, dict_keys, INDEX_BY_LOG2)) {
        if (!PRB_GET(objects, keys, dict_keys, log2_size, &size) ||
            !PRB_GET(objects, keys, dict_keys, log2_index_bytes, &index_bytes) ||
            !PRB_GET(objects, keys, dict_keys, kind, &kind) || size < 3 || size > 32 ||
            index_bytes != log2_index_bytes_of(size))
            return 0; /* the empty one, which all share */
        return head + (INT64_C(1) << index_bytes) +
               (INT64_C(2) << size) / 3 * (kind ? UNICODE_ENTRY : DICT_ENTRY);
    }
    if (!PRB_GET(objects, keys, dict_keys, size, &size) || size < 8 || size > ITEMS_MAX ||
        !is_power_of_two(size))
        return 0;
    if (PRB_IS(layout, dict_keys, HASH_TABLE))
        return head + (int64_t)size * DICT_ENTRY;
    index_bytes = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;
    return head + (int64_t)(size * index_bytes + 2 * size / 3 * DICT_ENTRY);
}

static int64_t set_bytes(struct prb_objects *objects, prb_addr object)
{
    uint64_t mask;
    return PRB_GET(objects, object, set, mask, &mask) && mask > SET_SMALL && mask < ITEMS_MAX &&
                   is_power_of_two(mask + 1)
               ? (int64_t)(mask + 1) * SET_ENTRY
               : 0;
}

static int64_t own_bytes(struct prb_objects *objects, prb_addr object,
                         const struct prb_object_type *type)
{
    uint64_t items = 0, allocated = 0;
    int64_t bytes = type->basicsize;
    if (type->itemsize && PRB_GET(objects, object, varobject, size, &items) &&
        (int64_t)items < ITEMS_MAX && (int64_t)items > 0)
        bytes += type->itemsize * (int64_t)items;
    if (type->kind == PRB_OBJ_LIST && PRB_GET(objects, object, list, allocated, &allocated) &&
        allocated < ITEMS_MAX)
        bytes += 8 * (int64_t)allocated;
    else if (type->kind == PRB_OBJ_DICT)
        bytes += dict_bytes(objects, object);
    else if (type->kind == PRB_OBJ_SET || type->kind == PRB_OBJ_FROZENSET)
        bytes += set_bytes(objects, object);
    return bytes;
}

/* ---- the types ---- */

/* That of a type; NULL: out of memory. */
static struct prb_tally *tally_of(struct prb_tallies *tallies, struct prb_objects *objects,
                                  prb_addr type)
{
    uint64_t known = prb_hash_map_number(&tallies->by_type, type);
    if (known)
        return &tallies->items[known - 1];
    struct prb_hash_slot *slot = prb_hash_map_add(&tallies->by_type, type);
    if (!slot || !PRB_GROW(tallies->items, tallies->count, tallies->cap))
        return NULL;
    struct prb_tally *tally = &tallies->items[tallies->count++];
    *tally = (struct prb_tally){.type = type, .known = prb_type_at(objects, type, NULL)};
    tally->head = tally->known ? head_bytes(objects, tally->known) : 0;
    slot->number = tallies->count;
    return tally;
}

/* Whether it is still an object of that type: it may have been freed since the collector's lists were
 * read, and its memory hold other bytes. */
static bool is_still(struct prb_objects *objects, const struct prb_gc_object *object)
{
    uint64_t type;
    return PRB_GET(objects, object->object, object, type, &type) && type == object->type;
}

static bool count_object(struct prb_tallies *tallies, struct prb_objects *objects,
                         const struct prb_gc_object *object, bool bytes)
{
    struct prb_tally *tally = tally_of(tallies, objects, object->type);
    if (!tally)
        return false;
    tally->count++;
    tally->young += object->generation == 0;
    if (bytes && tally->known && is_still(objects, object))
        tally->bytes += tally->head + own_bytes(objects, object->object, tally->known);
    return true;
}

void prb_tallies_deinit(struct prb_tallies *tallies)
{
    free(tallies->items);
    prb_hash_map_deinit(&tallies->by_type);
    *tallies = (struct prb_tallies){0};
}

const struct prb_tally *prb_tallies_find(const struct prb_tallies *tallies, prb_addr type)
{
    uint64_t known = prb_hash_map_number(&tallies->by_type, type);
    return known ? &tallies->items[known - 1] : NULL;
}

bool prb_tallies_count(const struct prb_heap_part *part, bool bytes, struct prb_tallies *out,
                       struct prb_error *err)
{
    PRB_AUTO(prb_tallies) struct prb_tallies tallies = {0};
    for (size_t i = 0; i < part->found.count; i++) {
        if (!count_object(&tallies, part->runtime->objects, &part->found.items[i], bytes))
            return prb_nomem(err);
        if (i % PRB_GC_PROGRESS == 0)
            prb_progress("objects counted", i);
    }
    prb_progress(NULL, 0);
    *out = tallies;
    tallies = (struct prb_tallies){0};
    return true;
}
