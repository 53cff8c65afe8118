/* Builders of objects in synthetic memory: what CPython would have made, in any layout. */
#ifndef PRB_TESTS_OBJECT_IMAGE_H
#define PRB_TESTS_OBJECT_IMAGE_H

#include "image.h"

#include "py/object/reader.h"

enum {
    FLAG_INT = 24,
    FLAG_LIST,
    FLAG_TUPLE,
    FLAG_BYTES,
    FLAG_STR,
    FLAG_DICT,
    FLAG_EXCEPTION,
    FLAG_TYPE
};
#define HEAP (1ull << 9)

struct types {
    prb_addr object, none, int_, float_, str, list, tuple, dict, set, deque;
};

struct fixture {
    struct image image;
    struct types types;
    struct prb_objects *objects;
};

static inline prb_addr builtin(struct image *image, const char *name, int flag, prb_addr base)
{
    return image_type(image, name, flag ? 1ull << flag : 0, base);
}

static inline void fixture_init(struct fixture *f, size_t version)
{
    struct prb_error err = {0};
    image_init(&f->image, image_versions[version].hexversion,
               image_versions[version].free_threaded);
    f->types.object = builtin(&f->image, "object", 0, 0);
    f->types.none = builtin(&f->image, "NoneType", 0, f->types.object);
    f->types.int_ = builtin(&f->image, "int", FLAG_INT, f->types.object);
    f->types.float_ = builtin(&f->image, "float", 0, f->types.object);
    f->types.str = builtin(&f->image, "str", FLAG_STR, f->types.object);
    f->types.list = builtin(&f->image, "list", FLAG_LIST, f->types.object);
    f->types.tuple = builtin(&f->image, "tuple", FLAG_TUPLE, f->types.object);
    f->types.dict = builtin(&f->image, "dict", FLAG_DICT, f->types.object);
    f->types.set = builtin(&f->image, "set", 0, f->types.object);
    f->types.deque = builtin(&f->image, "collections.deque", 0, f->types.object);
    f->objects = prb_objects_new(&f->image.py, &err);
    IMAGE_CHECK(f->objects);
}

static inline void fixture_deinit(struct fixture *f)
{
    prb_objects_free(f->objects);
    image_deinit(&f->image);
}

static inline prb_addr new_int(struct fixture *f, int sign, const uint32_t *digits, uint64_t count)
{
    prb_addr object = image_object(&f->image, f->types.int_);
    bool tag = PRB_IS(&f->image.py.layout, int_size, TAG);
    uint64_t by_tag = count << 3 | (sign < 0 ? 2 : count ? 0 : 1);
    PUT(&f->image, object, long, tag, tag ? by_tag : sign < 0 ? 0 - count : count);
    if (digits)
        image_write(&f->image, object + OFF(&f->image, long, digits), digits, 4 * count);
    return object;
}

static inline prb_addr small(struct fixture *f, uint32_t value)
{
    return new_int(f, 1, &value, value != 0);
}

static inline prb_addr new_float(struct fixture *f, double value)
{
    prb_addr object = image_object(&f->image, f->types.float_);
    uint64_t bits;
    memcpy(&bits, &value, 8);
    PUT(&f->image, object, float, value, bits);
    return object;
}

enum { STR_COMPACT = 1, STR_ASCII = 2 };

static inline void put_state(struct fixture *f, prb_addr object, unsigned kind, unsigned how)
{
    unsigned shift = (unsigned)PRB_NUM(&f->image.py.layout, str_interned_bits);
    PUT(&f->image, object, str, state, (uint64_t)(kind | how << 3) << shift);
}

static inline prb_addr new_str(struct fixture *f, const void *text, uint64_t length, unsigned kind,
                               unsigned how)
{
    prb_addr object = image_object(&f->image, f->types.str);
    PUT(&f->image, object, str, length, length);
    put_state(f, object, kind, how);
    prb_addr data = object + (how & STR_ASCII ? OFF(&f->image, str, ascii_data)
                                              : OFF(&f->image, str, compact_data));
    if (!(how & STR_COMPACT)) {
        data = image_alloc(&f->image);
        PUT(&f->image, object, str, data, data);
    }
    if (text)
        image_write(&f->image, data, text, length * kind);
    return object;
}

static inline prb_addr ascii(struct fixture *f, const char *text)
{
    return new_str(f, text, strlen(text), 1, STR_COMPACT | STR_ASCII);
}

static inline prb_addr new_list(struct fixture *f, const uint64_t *items, uint64_t count)
{
    prb_addr object = image_object(&f->image, f->types.list), array = image_alloc(&f->image);
    PUT(&f->image, object, list, size, count);
    PUT(&f->image, object, list, items, array);
    image_write(&f->image, array, items, 8 * count);
    return object;
}

static inline prb_addr new_tuple(struct fixture *f, const uint64_t *items, uint64_t count)
{
    prb_addr object = image_object(&f->image, f->types.tuple);
    PUT(&f->image, object, tuple, size, count);
    image_write(&f->image, object + OFF(&f->image, tuple, items), items, 8 * count);
    return object;
}

/* Keys with entries of (key, value) pairs; kind as dict_keys.kind has it, 0 before there was one.
 */
static inline prb_addr new_keys(struct fixture *f, const uint64_t (*pairs)[2], uint64_t count,
                                unsigned kind)
{
    struct image *image = &f->image;
    prb_addr keys = image_alloc(image);
    bool by_log2 = PRB_IS(&image->py.layout, dict_keys, INDEX_BY_LOG2);
    bool table = PRB_IS(&image->py.layout, dict_keys, HASH_TABLE);
    PUT(image, keys, dict_keys, size, 8);
    PUT(image, keys, dict_keys, log2_size, 3);
    PUT(image, keys, dict_keys, log2_index_bytes, 3);
    PUT(image, keys, dict_keys, kind, by_log2 ? kind : 0);
    PUT(image, keys, dict_keys, nentries, count);
    prb_addr entries = keys + OFF(image, dict_keys, indices) + (table ? 0 : 8);
    size_t stride = by_log2 && kind ? 16 : 24;
    for (uint64_t i = 0; i < count; i++) {
        image_word(image, entries + i * stride + stride - 16, pairs[i][0]);
        image_word(image, entries + i * stride + stride - 8, pairs[i][1]);
    }
    return keys;
}

static inline prb_addr new_dict(struct fixture *f, prb_addr keys, prb_addr values)
{
    prb_addr object = image_object(&f->image, f->types.dict);
    PUT(&f->image, object, dict, keys, keys);
    PUT(&f->image, object, dict, values, values);
    return object;
}

static inline prb_addr new_values(struct fixture *f, const uint64_t *items, uint64_t count)
{
    struct image *image = &f->image;
    prb_addr values = image_alloc(image);
    PUT(image, values, dict_values, capacity, count);
    PUT(image, values, dict_values, valid, 1);
    int32_t offset = PRB_OFF(&image->py.layout, dict_values, values);
    image_write(image, values + (offset == PRB_ABSENT ? 0 : (uint64_t)offset), items, 8 * count);
    return values;
}

static inline prb_addr new_set(struct fixture *f, const uint64_t (*entries)[2], uint64_t slots,
                               uint64_t used)
{
    prb_addr object = image_object(&f->image, f->types.set), table = image_alloc(&f->image);
    PUT(&f->image, object, set, used, used);
    PUT(&f->image, object, set, mask, slots - 1);
    PUT(&f->image, object, set, table, table);
    image_write(&f->image, table, entries, 16 * slots);
    return object;
}

/* A class statement's class with its instance, attributes where the layout keeps them. */
static inline prb_addr new_instance(struct fixture *f, const char *name, uint64_t dict)
{
    struct image *image = &f->image;
    bool managed = !PRB_IS(&image->py.layout, instance, DICT_OFFSET);
    const uint64_t pairs[1][2] = {{ascii(f, "__module__"), ascii(f, "__main__")}};
    prb_addr type = image_type(image, name, HEAP | (managed ? 1 << 4 : 0), f->types.object);
    PUT(image, type, type, dict, new_dict(f, new_keys(f, pairs, 1, 1), 0));
    PUT(image, type, type, heap_qualname, ascii(f, name));
    if (!managed)
        PUT(image, type, type, dictoffset, 48);
    const uint64_t mro[2] = {type, f->types.object};
    PUT(image, type, type, mro, new_tuple(f, mro, 2));
    prb_addr object = image_object(image, type);
    image_word(image, object + (managed ? OFF(image, managed_dict, dict) : 48), dict);
    return object;
}

#endif
