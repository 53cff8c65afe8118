/*
 * Objects of a damaged target: a graph of every kind in one layout, with words of it overwritten.
 * Input: one byte for the version, then records of page (1), word in it (1), how (1) and value (8
 * bytes).
 */
#include <stdint.h>
#include <stdio.h>

#include "../unit/object_image.h"
#include "damage.h"
#include "repr/parts.h"
#include "repr/repr.h"
#include "tensor/tensor.h"

static prb_addr new_c_object(struct fixture *f, const char *name)
{
    return image_object(&f->image, builtin(&f->image, name, 0, f->types.object));
}

/* One of everything in a list. */
static prb_addr build(struct fixture *f)
{
    static const char *const names[] = {"complex",
                                        "bytearray",
                                        "frozenset",
                                        "range",
                                        "slice",
                                        "module",
                                        "function",
                                        "builtin_function_or_method",
                                        "method",
                                        "cell",
                                        "generator",
                                        "code",
                                        "weakref",
                                        "mappingproxy",
                                        "numpy.ndarray",
                                        "torch._C.TensorBase",
                                        "numpy.float32",
                                        "collections.deque",
                                        "functools.partial",
                                        "torch.dtype"};
    const uint32_t digits[] = {5, 6, 7}, wide[] = {0x1f600, 'a'};
    const uint64_t pairs[3][2] = {{ascii(f, "k"), new_int(f, 1, digits, 3)},
                                  {ascii(f, "_value_"), new_float(f, 2.5)},
                                  {ascii(f, "_name_"), new_str(f, wide, 2, 4, STR_COMPACT)}};
    const uint64_t entries[2][2] = {{small(f, 3), 3}, {ascii(f, "m"), 4}};
    const uint64_t values[3] = {small(f, 7), small(f, 8), 0};
    uint64_t items[40];
    size_t n = 0;
    items[n++] = new_dict(f, new_keys(f, pairs, 3, 0), 0);
    items[n++] = new_dict(f, new_keys(f, pairs, 3, 2), new_values(f, values, 3));
    items[n++] = new_set(f, entries, 2, 2);
    items[n++] = new_tuple(f, pairs[0], 2);
    items[n++] = new_instance(f, "Thing", new_dict(f, new_keys(f, pairs, 3, 1), 0));
    items[n++] = new_instance(f, "Enum", new_dict(f, new_keys(f, pairs, 3, 1), 0));
    items[n++] = new_str(f, "far", 3, 1, 0);
    items[n++] = f->types.list;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        items[n++] = new_c_object(f, names[i]);
    return new_list(f, items, n);
}

/* ---- unfolding ---- */

enum { PARTS_MAX = 40, DEPTH_MAX = 2 };

struct unfolding {
    struct fixture *f;
    unsigned depth;
    size_t count;
};

static void unfold(struct fixture *f, prb_addr object, unsigned depth);

static bool unfold_part(void *context, const struct prb_raw_part *part)
{
    struct unfolding *unfolding = context;
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    IMAGE_CHECK(part->name && (part->object || part->text || !part->access || *part->access));
    if (part->object && prb_object_summary(unfolding->f->objects, part->object, 100, &out, NULL) &&
        unfolding->depth < DEPTH_MAX)
        unfold(unfolding->f, part->object, unfolding->depth + 1);
    return ++unfolding->count < PARTS_MAX;
}

static void unfold(struct fixture *f, prb_addr object, unsigned depth)
{
    struct unfolding elements = {f, depth, 0}, attributes = {f, depth, 0};
    struct prb_error err;
    uint64_t indexed, named;
    if (prb_object_counts(f->objects, object, &indexed, &named, &err))
        IMAGE_CHECK(named <= PRB_PARTS_NAMED_MAX);
    (void)prb_object_elements(f->objects, object, 1, PARTS_MAX, unfold_part, &elements, &err);
    (void)prb_object_attributes(f->objects, object, unfold_part, &attributes, &err);
    IMAGE_CHECK(elements.count <= PARTS_MAX && attributes.count <= PARTS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct fixture f;
    fixture_init(&f, data[0] % (sizeof image_versions / sizeof *image_versions));
    prb_addr list = build(&f);
    damage(&f.image, data + 1, size - 1);
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    struct prb_error err;
    struct prb_repr_limits limits = {.characters = 2000};
    if (prb_object_repr(f.objects, list, &limits, &out, &err)) {
        size_t characters = 0;
        for (size_t i = 0; i < out.len; i++)
            characters += ((uint8_t)out.data[i] & 0xc0) != 0x80;
        IMAGE_CHECK(characters <= limits.characters);
    }
    unfold(&f, list, 0);
    fixture_deinit(&f);
    return 0;
}
