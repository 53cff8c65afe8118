/*
 * Parts of objects, found by their kind: elements by the walks of py/object, attributes by those
 * and by the fields that C types keep objects in (py/layout).
 */
#include "repr/parts.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "repr/repr.h"
#include "repr/writer.h"
#include "tensor/tensor.h"

/* ---- elements ---- */

/* Where a kind has the number of its elements. */
static bool size_field(enum prb_object_kind kind, enum prb_field *out)
{
    static const struct {
        enum prb_object_kind kind;
        enum prb_field field;
    } fields[] = {
        {PRB_OBJ_LIST, PRB_F_list_size},     {PRB_OBJ_TUPLE, PRB_F_tuple_size},
        {PRB_OBJ_DICT, PRB_F_dict_used},     {PRB_OBJ_SET, PRB_F_set_used},
        {PRB_OBJ_FROZENSET, PRB_F_set_used}, {PRB_OBJ_DEQUE, PRB_F_deque_length},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].kind == kind) {
            *out = fields[i].field;
            return true;
        }
    return false;
}

static bool read_array(struct prb_objects *objects, prb_addr object, enum prb_object_kind kind,
                       struct prb_tensor *out)
{
    return (kind == PRB_OBJ_TENSOR || kind == PRB_OBJ_NDARRAY) &&
           prb_array_read(objects, object, out, NULL);
}

static bool element_count(struct prb_objects *objects, prb_addr object, enum prb_object_kind kind,
                          uint64_t *out, struct prb_error *err)
{
    enum prb_field field;
    struct prb_tensor array;
    *out = 0;
    if (read_array(objects, object, kind, &array)) {
        *out = array.dims && !array.unreadable[0] ? (uint64_t)array.shape[0] : 0;
        return true;
    }
    if (!size_field(kind, &field))
        return true;
    if (!prb_objects_field(objects, object, field, out))
        return prb_fail_addr(err, object, "the object at 0x%" PRIx64 " cannot be read", object);
    if (*out > INT64_MAX / 8)
        return prb_fail(err, PRB_CORRUPT, "a container has too many items");
    return true;
}

struct elements {
    struct prb_objects *objects;
    uint64_t at, start, end;
    bool subscripts; /* an index means the element */
    prb_raw_part_fn *each;
    void *context;
};

static bool give_indexed(struct elements *elements, prb_addr value)
{
    char name[24], access[32];
    snprintf(name, sizeof name, "%" PRIu64, elements->at);
    snprintf(access, sizeof access, "[%s]", name);
    struct prb_raw_part part = {
        .name = name, .access = elements->subscripts ? access : NULL, .object = value};
    return elements->each(elements->context, &part);
}

/* Kinds whose repr reads back as the same key. */
static bool reads_back(enum prb_object_kind kind)
{
    return kind == PRB_OBJ_STR || kind == PRB_OBJ_INT || kind == PRB_OBJ_BOOL ||
           kind == PRB_OBJ_BYTES || kind == PRB_OBJ_NONE || kind == PRB_OBJ_FLOAT;
}

static bool give_keyed(struct elements *elements, prb_addr key, prb_addr value)
{
    PRB_AUTO(prb_buf) struct prb_buf name = {0}, access = {0};
    struct prb_repr_limits limits = {.characters = PRB_PART_KEY};
    bool good = prb_object_repr(elements->objects, key, &limits, &name, NULL) && name.data;
    struct prb_object_type *type = prb_type_of(elements->objects, key, NULL);
    bool whole = good && (name.len < 3 || strcmp(name.data + name.len - 3, PRB_CUT));
    if (whole && type && type->exact && reads_back(type->kind))
        prb_buf_addf(&access, "[%s]", name.data);
    struct prb_raw_part part = {
        .name = good ? name.data : PRB_UNREADABLE, .access = access.data, .object = value};
    return elements->each(elements->context, &part);
}

static bool element(void *context, prb_addr key, prb_addr value)
{
    struct elements *elements = context;
    size_t steps = elements->objects->steps; /* of this walk; texts of elements have their own */
    bool good = true;
    if (elements->at >= elements->start)
        good = key ? give_keyed(elements, key, value) : give_indexed(elements, value);
    elements->objects->steps = steps;
    elements->at++;
    return good && elements->at < elements->end;
}

/* Lists and tuples are arrays: straight to the first one that is asked for. */
static bool array_elements(struct elements *elements, prb_addr items, struct prb_error *err)
{
    enum { PIECE = 64 };
    for (elements->at = elements->start; elements->at < elements->end;) {
        uint64_t left = elements->end - elements->at, words[PIECE];
        size_t n = left < PIECE ? (size_t)left : PIECE;
        if (!prb_objects_words(elements->objects, items + 8 * elements->at, words, n))
            return prb_fail_addr(err, items, "the items at 0x%" PRIx64 " cannot be read", items);
        prb_objects_prefetch(elements->objects, words, n);
        for (size_t i = 0; i < n; i++, elements->at++)
            if (!give_indexed(elements, words[i]))
                return true;
    }
    return true;
}

bool prb_object_elements(struct prb_objects *objects, prb_addr object, uint64_t start,
                         uint64_t count, prb_raw_part_fn *each, void *context,
                         struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, object, err);
    uint64_t size, items = object + (uint64_t)PRB_OFF(objects->layout, tuple, items);
    if (!type || !element_count(objects, object, type->kind, &size, err))
        return false;
    if (start >= size || !count)
        return true;
    count = count < size - start ? count : size - start;
    if (type->kind == PRB_OBJ_TENSOR || type->kind == PRB_OBJ_NDARRAY)
        return prb_array_elements(objects, object, start, count, each, context, err);
    struct elements elements = {
        .objects = objects,
        .start = start,
        .end = start + count,
        .subscripts = type->kind != PRB_OBJ_SET && type->kind != PRB_OBJ_FROZENSET,
        .each = each,
        .context = context,
    };
    if (type->kind == PRB_OBJ_LIST && !PRB_GET(objects, object, list, items, &items))
        return prb_fail_addr(err, object, "the list at 0x%" PRIx64 " cannot be read", object);
    if (type->kind == PRB_OBJ_LIST || type->kind == PRB_OBJ_TUPLE)
        return array_elements(&elements, items, err);
    bool before = objects->looking_up;
    objects->looking_up = start > 0; /* values that are skipped are not fetched */
    bool good = type->kind == PRB_OBJ_DICT
                    ? prb_dict_each(objects, object, element, &elements, err)
                    : prb_sequence_each(objects, object, element, &elements, err);
    objects->looking_up = before;
    return good;
}

/* ---- attributes ---- */

struct attributes {
    prb_raw_part_fn *each;
    void *context;
    struct prb_objects *objects;
    bool ended;
};

static bool give_attribute(void *context, const char *name, prb_addr value)
{
    struct attributes *attributes = context;
    PRB_AUTO(prb_buf) struct prb_buf access = {0};
    bool identifier = *name && !isdigit((unsigned char)*name);
    for (const char *c = name; *c; c++)
        identifier &= *c == '_' || isalnum((unsigned char)*c) || (unsigned char)*c >= 128;
    if (identifier)
        prb_buf_addf(&access, ".%s", name);
    struct prb_raw_part part = {.name = name, .access = access.data, .object = value};
    size_t steps = attributes->objects->steps; /* of this walk */
    attributes->ended = !attributes->each(attributes->context, &part);
    attributes->objects->steps = steps;
    return !attributes->ended;
}

static bool give_name(void *context, prb_addr key, prb_addr value)
{
    struct attributes *attributes = context;
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    if (!prb_object_str(attributes->objects, key, PRB_PART_KEY, &name, NULL) || !name.data)
        return true; /* a key that is not a name */
    return give_attribute(context, name.data, value);
}

/* Objects that C types keep in fields of their own. */
static const struct {
    enum prb_object_kind kind;
    enum prb_field field;
    const char *name;
} held[] = {
    {PRB_OBJ_CELL, PRB_F_cell_ref, "cell_contents"},
    {PRB_OBJ_METHOD, PRB_F_method_self, "__self__"},
    {PRB_OBJ_METHOD, PRB_F_method_func, "__func__"},
    {PRB_OBJ_FUNCTION, PRB_F_function_defaults, "__defaults__"},
    {PRB_OBJ_FUNCTION, PRB_F_function_closure, "__closure__"},
    {PRB_OBJ_EXCEPTION, PRB_F_exception_args, "args"},
    {PRB_OBJ_EXCEPTION, PRB_F_exception_cause, "__cause__"},
    {PRB_OBJ_EXCEPTION, PRB_F_exception_context, "__context__"},
};

static void give_held(struct attributes *attributes, prb_addr object, enum prb_object_kind kind)
{
    for (size_t i = 0; i < sizeof held / sizeof *held && !attributes->ended; i++) {
        uint64_t value;
        if (held[i].kind == kind &&
            prb_objects_field(attributes->objects, object, held[i].field, &value) && value)
            give_attribute(attributes, held[i].name, value);
    }
}

static void add_shape(const struct prb_tensor *array, char open, char close, struct prb_buf *out)
{
    prb_buf_addc(out, open);
    for (unsigned i = 0; i < array->dims; i++)
        prb_buf_addf(out, "%s%" PRId64, i ? ", " : "", array->shape[i]);
    if (array->dims == 1 && open == '(')
        prb_buf_addc(out, ',');
    prb_buf_addc(out, close);
}

static void give_array(struct attributes *attributes, const struct prb_tensor *array)
{
    PRB_AUTO(prb_buf) struct prb_buf shape = {0}, stride = {0}, version = {0};
    add_shape(array, '(', ')', &shape);
    prb_array_stride(array, &stride);
    prb_buf_addf(&version, "%" PRId64, array->version);
    const struct prb_raw_part parts[] = {
        {.name = "shape", .access = ".shape", .text = shape.data},
        {.name = "dtype", .access = ".dtype", .text = array->dtype},
        {.name = "device", .access = ".device", .text = array->device},
        {.name = "layout", .text = array->torch ? array->layout : NULL},
        {.name = "stride", .text = stride.data},
        {.name = "requires_grad",
         .access = ".requires_grad",
         .text = !array->torch          ? NULL
                 : array->requires_grad ? "True"
                                        : "False"},
        {.name = "is_leaf",
         .access = ".is_leaf",
         .text = !array->torch    ? NULL
                 : array->is_leaf ? "True"
                                  : "False"},
        {.name = "version", .text = array->version >= 0 ? version.data : NULL},
        {.name = "unreadable", .text = array->unreadable},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !attributes->ended; i++)
        if (parts[i].text && *parts[i].text)
            attributes->ended = !attributes->each(attributes->context, &parts[i]);
}

/* The dict whose items are the object's names: a module's, a class's; 0: it has none of that kind.
 */
static prb_addr names_of(struct prb_objects *objects, prb_addr object, enum prb_object_kind kind)
{
    uint64_t dict = 0;
    if (kind == PRB_OBJ_MODULE)
        (void)PRB_GET(objects, object, module, dict, &dict);
    else if (kind == PRB_OBJ_TYPE)
        (void)PRB_GET(objects, object, type, dict, &dict);
    return dict;
}

/* Attributes of builtins of these kinds mean nothing to the reader. */
static bool has_attributes(const struct prb_object_type *type)
{
    return type->kind == PRB_OBJ_OTHER || type->kind == PRB_OBJ_EXCEPTION || !type->exact;
}

bool prb_object_attributes(struct prb_objects *objects, prb_addr object, prb_raw_part_fn *each,
                           void *context, struct prb_error *err)
{
    struct attributes attributes = {.each = each, .context = context, .objects = objects};
    struct prb_tensor array;
    struct prb_object_type *type = prb_type_of(objects, object, err);
    if (!type)
        return false;
    enum prb_object_kind kind = type->kind;
    if (read_array(objects, object, kind, &array))
        give_array(&attributes, &array);
    give_held(&attributes, object, kind);
    if (attributes.ended)
        return true;
    prb_addr names = names_of(objects, object, kind);
    if (names)
        return prb_dict_each(objects, names, give_name, &attributes, err);
    return !has_attributes(type) ||
           prb_attributes_each(objects, object, give_attribute, &attributes, err);
}

static bool count_part(void *context, const struct prb_raw_part *part)
{
    (void)part;
    uint64_t *count = context;
    return ++*count < PRB_PARTS_NAMED_MAX;
}

bool prb_object_counts(struct prb_objects *objects, prb_addr object, uint64_t *indexed_out,
                       uint64_t *named_out, struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, object, err);
    uint64_t indexed, named = 0;
    if (!type || !element_count(objects, object, type->kind, &indexed, err))
        return false;
    bool before = objects->looking_up;
    objects->looking_up = true;
    bool good = prb_object_attributes(objects, object, count_part, &named, err);
    objects->looking_up = before;
    if (good) {
        *indexed_out = indexed;
        *named_out = named;
    }
    return good;
}

/* ---- summaries ---- */

bool prb_object_summary(struct prb_objects *objects, prb_addr object, size_t limit,
                        struct prb_buf *out, struct prb_error *err)
{
    struct prb_repr_limits limits = {.characters = limit};
    struct prb_tensor array;
    struct prb_object_type *type = prb_type_of(objects, object, err);
    if (!type)
        return false;
    if (!read_array(objects, object, type->kind, &array))
        return prb_object_repr(objects, object, &limits, out, err);
    prb_buf_addf(out, "%s %s ", prb_type_short_name(type), array.dtype);
    add_shape(&array, '[', ']', out);
    if (*array.device)
        prb_buf_addf(out, " %s", array.device);
    if (array.numel == 1 && array.dims <= PRB_VALUE_DIMS)
        prb_array_value(objects, &array, out);
    return prb_buf_ok(out) || prb_nomem(err);
}
