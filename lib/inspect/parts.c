/*
 * Objects of a target, unfolded for probing.h: the parts that repr/parts.h finds, with the text,
 * the type and the counts of each.
 */
#include <string.h>

#include "inspect/target.h"
#include "repr/parts.h"

#define PARTS_BYTES_MAX (64 << 20) /* of all texts; hostile objects can ask for far more */

struct box {
    struct prb_parts parts; /* first */
    struct prb_arena arena; /* its strings */
    size_t cap, bytes;
};

struct taking {
    struct box *box;
    struct prb_objects *objects;
    size_t limit;
    const char *only; /* the part that is wanted, by its access; NULL: all */
    bool failed;      /* out of memory */
};

void prb_parts_free(struct prb_parts *parts)
{
    struct box *box = (struct box *)parts;
    if (!box)
        return;
    free(parts->items);
    prb_arena_deinit(&box->arena);
    free(box);
}
PRB_DEFINE_AUTO_PTR(prb_parts, struct prb_parts, prb_parts_free)

/* An object that cannot be read gets an entry that says so. */
static void describe(struct taking *taking, prb_addr object, struct prb_part *part)
{
    struct prb_arena *arena = &taking->box->arena;
    PRB_AUTO(prb_buf) struct prb_buf text = {0}, type = {0};
    struct prb_error err = {0};
    if (!prb_object_summary(taking->objects, object, taking->limit, &text, &err)) {
        part->repr = prb_arena_printf(arena, "<unreadable: %s>", err.text);
        return;
    }
    taking->box->bytes += text.len;
    part->addr = object;
    part->repr = prb_arena_strndup(arena, text.data ? text.data : "", text.len);
    if (prb_object_type_name(taking->objects, object, &type, NULL) && type.data)
        part->type = prb_arena_strdup(arena, type.data);
    (void)prb_object_counts(taking->objects, object, &part->indexed, &part->named, NULL);
}

static bool take(void *context, const struct prb_raw_part *raw)
{
    struct taking *taking = context;
    struct box *box = taking->box;
    if (taking->only && (!raw->access || strcmp(raw->access, taking->only) != 0))
        return true;
    if (box->parts.count >= PRB_PARTS_MAX || box->bytes > PARTS_BYTES_MAX)
        return false;
    if (!PRB_GROW(box->parts.items, box->parts.count, box->cap)) {
        taking->failed = true;
        return false;
    }
    struct prb_part *part = &box->parts.items[box->parts.count++];
    *part = (struct prb_part){
        .name = prb_arena_strdup(&box->arena, raw->name),
        .access = raw->access ? prb_arena_strdup(&box->arena, raw->access) : NULL,
        .repr = raw->text ? prb_arena_strdup(&box->arena, raw->text) : NULL,
    };
    if (raw->object)
        describe(taking, raw->object, part);
    return !taking->only;
}

static bool take_parts(struct taking *taking, prb_addr object,
                       const struct prb_parts_options *options, struct prb_error *err)
{
    uint64_t count = options->count ? options->count : PRB_PARTS_MAX;
    if (options->indexed &&
        !prb_object_elements(taking->objects, object, options->start, count, take, taking, err))
        return false;
    return !options->named || prb_object_attributes(taking->objects, object, take, taking, err);
}

struct prb_parts *prb_parts_take(struct prb_target *target, prb_addr object,
                                 const struct prb_parts_options *options, struct prb_error *err)
{
    static const struct prb_parts_options whole;
    struct box *box = calloc(1, sizeof *box);
    if (!box)
        return PRB_NULL(prb_nomem(err));
    PRB_AUTO(prb_parts) struct prb_parts *parts = &box->parts;
    options = options ? options : &whole;
    struct taking taking = {.box = box,
                            .objects = target->runtimes[0].objects,
                            .limit = options->repr_limit,
                            .only = options->only};
    if (prb_proc_live(target->proc))
        prb_objects_clear(taking.objects);
    PRB_AUTO(prb_buf) struct prb_buf type = {0};
    if (!prb_object_type_name(taking.objects, object, &type, err))
        return NULL;
    describe(&taking, object, &parts->whole);
    if (!take_parts(&taking, object, options, err))
        return NULL;
    if (taking.failed)
        return PRB_NULL(prb_nomem(err));
    return PRB_STEAL(parts);
}
