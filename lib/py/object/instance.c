/*
 * Attributes that live in an instance: in its dict, in values beside its class's shared keys, in
 * __slots__. Sources: _PyObject_GetDictPtr and _PyObject_ComputedDictPointer in Objects/object.c;
 * Include/internal/pycore_object.h (3.11+); Objects/object_layout.md (3.13+).
 */
#include <inttypes.h>
#include <string.h>

#include "py/object/reader.h"

/* ---- where the attributes are ---- */

/* Items of a variable-size object; an int's size hides in its tag. */
static bool var_size(struct prb_objects *objects, prb_addr object,
                     const struct prb_object_type *type, uint64_t *out)
{
    struct prb_int number;
    int64_t size;
    if (type->kind == PRB_OBJ_INT || type->kind == PRB_OBJ_BOOL) {
        if (!prb_int_open(objects, object, &number, NULL))
            return false;
        *out = number.count;
        return true;
    }
    if (!PRB_GET(objects, object, varobject, size, (uint64_t *)&size))
        return false;
    *out = size < 0 ? 0 - (uint64_t)size : (uint64_t)size;
    return true;
}

/* tp_dictoffset: from the start, or, negative, from the end of the object. */
static bool dict_by_offset(struct prb_objects *objects, prb_addr object,
                           const struct prb_object_type *type, struct prb_attribute_place *out)
{
    int64_t offset = type->dictoffset;
    uint64_t items = 0;
    if (offset < -PRB_BASICSIZE_MAX || offset > PRB_BASICSIZE_MAX)
        return false;
    if (offset < 0) {
        if (type->itemsize && (!var_size(objects, object, type, &items) || items > UINT32_MAX))
            return false;
        uint64_t end = (uint64_t)type->basicsize + items * (uint64_t)type->itemsize;
        offset += (int64_t)((end + 7) & ~7ull);
    }
    return offset >= 16 && prb_objects_words(objects, object + (uint64_t)offset, &out->dict, 1);
}

static bool word_near(struct prb_objects *objects, prb_addr object, int32_t distance, uint64_t *out)
{
    return distance != PRB_ABSENT &&
           prb_objects_words(objects, object + (uint64_t)(int64_t)distance, out, 1);
}

static bool inline_values(struct prb_objects *objects, prb_addr object,
                          const struct prb_object_type *type, struct prb_attribute_place *out)
{
    uint64_t valid;
    prb_addr values = object + (uint64_t)type->basicsize;
    if (!(type->flags & PRB_TPFLAG_INLINE_VALUES))
        return true;
    if (!PRB_GET(objects, values, dict_values, valid, &valid))
        return false;
    if (valid)
        out->values = values;
    return true;
}

static bool managed_dict(struct prb_objects *objects, prb_addr object,
                         const struct prb_object_type *type, struct prb_attribute_place *out)
{
    const struct prb_layout *layout = objects->layout;
    uint64_t word = 0;
    if (!word_near(objects, object, PRB_OFF(layout, managed_dict, dict), &word))
        return false;
    if (PRB_IS(layout, instance, DICT_OR_VALUES) && word & 1) {
        out->values = word + 1; /* stored one below, to distinguish it from a dict */
        word = 0;
    }
    out->dict = word;
    if (!word && PRB_IS(layout, instance, VALUES_AND_DICT) &&
        !word_near(objects, object, PRB_OFF(layout, managed_dict, values), &out->values))
        return false;
    if (!word && PRB_IS(layout, instance, INLINE_VALUES) &&
        !inline_values(objects, object, type, out))
        return false;
    return !out->values || PRB_GET(objects, type->addr, type, heap_cached_keys, &out->keys);
}

bool prb_attribute_place_find(struct prb_objects *objects, prb_addr object,
                              const struct prb_object_type *type, struct prb_attribute_place *out)
{
    *out = (struct prb_attribute_place){0};
    if (type->flags & PRB_TPFLAG_MANAGED_DICT && !PRB_IS(objects->layout, instance, DICT_OFFSET))
        return managed_dict(objects, object, type, out);
    return !type->dictoffset || dict_by_offset(objects, object, type, out);
}

#define VALUES_BYTES 256 /* of the values of an instance: their order, and the first ones */

void prb_attributes_announce(struct prb_objects *objects, prb_addr object)
{
    struct prb_attribute_place place;
    struct prb_object_type *type = prb_type_of(objects, object, NULL);
    if (!type || !prb_attribute_place_find(objects, object, type, &place))
        return;
    if (place.dict)
        prb_objects_prefetch(objects, &place.dict, 1);
    else if (place.values > VALUES_BYTES)
        prb_view_prefetch(objects->view, place.values - VALUES_BYTES / 4, VALUES_BYTES);
}

/* ---- all of them ---- */

struct attributes {
    struct prb_objects *objects;
    prb_attribute_fn *each;
    void *context;
    bool ended;
};

enum { NAME_MAX_CHARACTERS = 256 };

static bool give(void *context, prb_addr key, prb_addr value)
{
    struct attributes *attributes = context;
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    if (!prb_object_str(attributes->objects, key, NAME_MAX_CHARACTERS, &name, NULL))
        return true; /* a key that is not a name */
    attributes->ended = !attributes->each(attributes->context, name.data ? name.data : "", value);
    return !attributes->ended;
}

/* Members that C types publish for their own use: __dict__, __doc__. */
static bool is_special(const struct prb_object_type *type, const char *name)
{
    size_t len = strlen(name);
    return !type->python && len > 4 && !strncmp(name, "__", 2) && !strcmp(name + len - 2, "__");
}

/* Slots of the class and its bases, the oldest first. */
static bool slots_each(struct attributes *attributes, prb_addr object, struct prb_object_type *type)
{
    struct prb_object_type *chain[PRB_BASES_MAX];
    size_t depth = 0;
    for (struct prb_object_type *t = type; t && depth < PRB_BASES_MAX;
         t = t->base ? prb_type_at(attributes->objects, t->base, NULL) : NULL)
        chain[depth++] = t;
    bool good = true;
    while (depth-- && !attributes->ended) {
        size_t count;
        const struct prb_member *members =
            prb_type_members(attributes->objects, chain[depth], &count);
        for (size_t i = 0; i < count && !attributes->ended; i++) {
            uint64_t value;
            if (!prb_objects_words(attributes->objects, object + (uint64_t)members[i].offset,
                                   &value, 1))
                good = false;
            else if (value && !is_special(chain[depth], members[i].name))
                attributes->ended = !attributes->each(attributes->context, members[i].name, value);
        }
    }
    return good;
}

bool prb_attributes_walk(struct prb_objects *objects, prb_addr object, struct prb_object_type *type,
                         prb_attribute_fn *each, void *context, struct prb_error *err)
{
    struct attributes attributes = {.objects = objects, .each = each, .context = context};
    struct prb_attribute_place place;
    if (!slots_each(&attributes, object, type))
        return prb_fail_addr(err, object, "the slots at 0x%" PRIx64 " cannot be read", object);
    if (attributes.ended)
        return true;
    if (!prb_attribute_place_find(objects, object, type, &place))
        return prb_fail_addr(err, object, "the attributes at 0x%" PRIx64 " cannot be read", object);
    if (place.dict)
        return prb_dict_walk(objects, place.dict, give, &attributes, err);
    if (place.values && place.keys)
        return prb_shared_values_each(objects, place.keys, place.values, give, &attributes, err);
    return true;
}

bool prb_attributes_each(struct prb_objects *objects, prb_addr object, prb_attribute_fn *each,
                         void *context, struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, object, err);
    if (!type)
        return false;
    size_t steps = objects->steps;
    objects->steps = PRB_DICT_MAX;
    bool good = prb_attributes_walk(objects, object, type, each, context, err);
    objects->steps = steps;
    return good;
}

struct wanted {
    struct prb_objects *objects;
    const char *name;
    prb_addr value;
};

static bool match(void *context, const char *name, prb_addr value)
{
    struct wanted *wanted = context;
    if (strcmp(name, wanted->name))
        return true;
    wanted->value = value;
    return false;
}

/* The same of a key whose text need not be made. */
static bool match_key(void *context, prb_addr key, prb_addr value)
{
    struct wanted *wanted = context;
    if (!prb_str_equals(wanted->objects, key, wanted->name))
        return true;
    wanted->value = value;
    return false;
}

static bool look_up(struct wanted *wanted, prb_addr object, struct prb_object_type *type,
                    struct prb_error *err)
{
    struct prb_objects *objects = wanted->objects;
    struct attributes slots = {.objects = objects, .each = match, .context = wanted};
    struct prb_attribute_place place;
    if (!slots_each(&slots, object, type) ||
        (!wanted->value && !prb_attribute_place_find(objects, object, type, &place)))
        return prb_fail_addr(err, object, "the attributes at 0x%" PRIx64 " cannot be read", object);
    if (wanted->value)
        return true;
    if (place.dict)
        return prb_dict_walk(objects, place.dict, match_key, wanted, err);
    return !place.values || !place.keys ||
           prb_shared_values_each(objects, place.keys, place.values, match_key, wanted, err);
}

bool prb_attribute_get(struct prb_objects *objects, prb_addr object, const char *name,
                       prb_addr *out, struct prb_error *err)
{
    struct wanted wanted = {.objects = objects, .name = name};
    struct prb_object_type *type = prb_type_of(objects, object, err);
    if (!type)
        return false;
    bool before = objects->looking_up;
    size_t steps = objects->steps;
    objects->looking_up = true;
    objects->steps = PRB_DICT_MAX;
    bool good = look_up(&wanted, object, type, err);
    objects->steps = steps;
    objects->looking_up = before;
    if (good)
        *out = wanted.value;
    return good;
}

bool prb_module_get(struct prb_objects *objects, prb_addr interpreter, const char *module,
                    const char *attribute, prb_addr *out, struct prb_error *err)
{
    uint64_t modules, dict;
    prb_addr found;
    if (!PRB_GET(objects, interpreter, interp, modules, &modules) || !modules)
        return prb_fail_addr(err, interpreter, "sys.modules of the interpreter cannot be read");
    if (!prb_dict_get(objects, modules, module, &found, err))
        return false;
    if (!found) {
        *out = 0;
        return true;
    }
    if (prb_object_kind(objects, found, NULL) != PRB_OBJ_MODULE)
        return prb_attribute_get(objects, found, attribute, out, err);
    if (!PRB_GET(objects, found, module, dict, &dict))
        return prb_fail_addr(err, found, "module %s cannot be read", module);
    return prb_dict_get(objects, dict, attribute, out, err);
}
