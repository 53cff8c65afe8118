/*
 * Types of the target, read once per reading.  The kind of an object follows from the flags of its
 * type where CPython has one, else from the name of the C type below it; a class's form (dataclass,
 * enum, named tuple) from its dict.
 */
#include <inttypes.h>
#include <string.h>

#include "py/object/reader.h"

/* ---- kinds ---- */

/* Types without a flag of their own, by the name their C code gives them. */
static const struct {
    const char *name;
    enum prb_object_kind kind;
} named_kinds[] = {
    {"NoneType", PRB_OBJ_NONE},
    {"bool", PRB_OBJ_BOOL},
    {"float", PRB_OBJ_FLOAT},
    {"complex", PRB_OBJ_COMPLEX},
    {"bytearray", PRB_OBJ_BYTEARRAY},
    {"set", PRB_OBJ_SET},
    {"frozenset", PRB_OBJ_FROZENSET},
    {"collections.deque", PRB_OBJ_DEQUE},
    {"frozendict", PRB_OBJ_DICT}, /* 3.15 */
    {"range", PRB_OBJ_RANGE},
    {"slice", PRB_OBJ_SLICE},
    {"module", PRB_OBJ_MODULE},
    {"function", PRB_OBJ_FUNCTION},
    {"builtin_function_or_method", PRB_OBJ_BUILTIN},
    {"method", PRB_OBJ_METHOD},
    {"cell", PRB_OBJ_CELL},
    {"generator", PRB_OBJ_GENERATOR},
    {"coroutine", PRB_OBJ_COROUTINE},
    {"async_generator", PRB_OBJ_ASYNC_GENERATOR},
    {"code", PRB_OBJ_CODE},
    {"numpy.ndarray", PRB_OBJ_NDARRAY},
    {"torch._C.TensorBase", PRB_OBJ_TENSOR},
    {"torch._C._TensorBase", PRB_OBJ_TENSOR}, /* until 2.1 */
};

/* Py_TPFLAGS_*_SUBCLASS, Include/object.h; the type that all others with the flag are below. */
static const struct {
    unsigned bit;
    enum prb_object_kind kind;
    const char *name;
} flagged_kinds[] = {
    {24, PRB_OBJ_INT, "int"},     {25, PRB_OBJ_LIST, "list"}, {26, PRB_OBJ_TUPLE, "tuple"},
    {27, PRB_OBJ_BYTES, "bytes"}, {28, PRB_OBJ_STR, "str"},   {29, PRB_OBJ_DICT, "dict"},
    {30, PRB_OBJ_EXCEPTION, ""},  {31, PRB_OBJ_TYPE, "type"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum prb_object_kind prb_kind_by_name(const char *name)
{
    for (size_t i = 0; i < COUNT(named_kinds); i++)
        if (!strcmp(named_kinds[i].name, name))
            return named_kinds[i].kind;
    return PRB_OBJ_OTHER;
}

/* The C type that decides an instance's form in memory: the type itself, or the first of its bases
 * that no class statement made.  Those have their module in tp_name when they live on the heap. */
static bool is_python_class(uint64_t flags, const char *name)
{
    return flags & PRB_TPFLAG_HEAP && !strchr(name, '.');
}

static void set_kind(struct prb_objects *objects, struct prb_object_type *type)
{
    type->python = is_python_class(type->flags, type->name);
    type->builtin = type->name;
    type->exact = !type->python;
    if (type->python) {
        struct prb_object_type *base = type->base ? prb_type_at(objects, type->base, NULL) : NULL;
        type->builtin = base ? base->builtin : "object";
        type->kind = base ? base->kind : PRB_OBJ_OTHER;
    } else {
        type->kind = prb_kind_by_name(type->name);
        type->exact = type->kind != PRB_OBJ_DICT; /* dict itself has a flag: this one is like it */
        /* Subclasses made in C, such as numpy.float64 and torch.Size. */
        if (type->kind == PRB_OBJ_OTHER && type->base && strcmp(type->name, "object")) {
            struct prb_object_type *base = prb_type_at(objects, type->base, NULL);
            type->kind = base ? base->kind : PRB_OBJ_OTHER;
            type->exact = type->kind == PRB_OBJ_OTHER;
        }
    }
    for (size_t i = 0; i < COUNT(flagged_kinds) && type->kind != PRB_OBJ_BOOL; i++)
        if (type->flags >> flagged_kinds[i].bit & 1) {
            type->kind = flagged_kinds[i].kind;
            type->exact = !strcmp(type->name, flagged_kinds[i].name) && !type->python;
        }
}

/* ---- reading one ---- */

/*
 * A core without the interpreter's files has its types, but not the text of their names: those
 * right below `object` are known by their flag, the others are "?".  NULL: it is not one that
 * `type`, which is its own type, made.
 */
static const char *name_by_flag(struct prb_objects *objects, const struct prb_object_type *type,
                                prb_addr metatype)
{
    uint64_t itself, above;
    if (!PRB_GET(objects, metatype, object, type, &itself) || itself != metatype)
        return NULL;
    bool below_object =
        type->base && PRB_GET(objects, type->base, type, base, &above) && above == 0;
    for (size_t i = 0; i < COUNT(flagged_kinds) && below_object; i++)
        if (type->flags >> flagged_kinds[i].bit & 1 && *flagged_kinds[i].name)
            return flagged_kinds[i].name;
    return "?";
}

static bool read_type(struct prb_objects *objects, prb_addr addr, struct prb_object_type *type)
{
    uint64_t name, metatype, meta_flags, basicsize, itemsize, dictoffset = 0;
    type->addr = addr;
    if (addr % 8 || !PRB_GET(objects, addr, object, type, &metatype) ||
        !PRB_GET(objects, addr, type, flags, &type->flags) ||
        !PRB_GET(objects, addr, type, name, &name) ||
        !PRB_GET(objects, addr, type, basicsize, &basicsize) ||
        !PRB_GET(objects, addr, type, itemsize, &itemsize) ||
        !PRB_GET(objects, addr, type, base, &type->base) ||
        !PRB_GET(objects, addr, type, dict, &type->dict))
        return false;
    (void)PRB_GET(objects, addr, type, dictoffset, &dictoffset);
    if (metatype % 8 || !PRB_GET(objects, metatype, type, flags, &meta_flags) ||
        !(meta_flags & PRB_TPFLAG_TYPE_SUBCLASS) || basicsize < 16 ||
        basicsize > PRB_BASICSIZE_MAX || itemsize > PRB_BASICSIZE_MAX)
        return false;
    type->basicsize = (int64_t)basicsize;
    type->itemsize = (int64_t)itemsize;
    type->dictoffset = (int64_t)dictoffset;
    type->name = prb_objects_cstring(objects, name, PRB_TYPE_NAME_MAX);
    if (!type->name)
        type->name = name_by_flag(objects, type, metatype);
    return type->name && *type->name;
}

struct prb_object_type *prb_type_at(struct prb_objects *objects, prb_addr addr,
                                    struct prb_error *err)
{
    struct prb_object_type *type = prb_hash_map_pointer(&objects->types, addr);
    if (!type && addr) {
        type = prb_arena_alloc(&objects->arena, sizeof *type);
        if (!type)
            return PRB_NULL(prb_nomem(err));
        bool good = objects->type_depth < PRB_BASES_MAX && read_type(objects, addr, type);
        struct prb_hash_slot *slot = prb_hash_map_add(&objects->types, addr);
        if (!slot)
            return PRB_NULL(prb_nomem(err));
        if (!good)
            type->name = NULL;
        /* Known before its bases are, so that a cycle of bases ends. */
        type->builtin = "object";
        slot->pointer = type;
        if (good) {
            objects->type_depth++;
            set_kind(objects, type);
            objects->type_depth--;
        }
    }
    if (!type || !type->name)
        return PRB_NULL(prb_fail_addr(err, addr, "there is no type at 0x%" PRIx64, addr));
    return type;
}

struct prb_object_type *prb_type_of(struct prb_objects *objects, prb_addr object,
                                    struct prb_error *err)
{
    uint64_t type;
    if (!object || object % 8 || !PRB_GET(objects, object, object, type, &type))
        return PRB_NULL(prb_fail_addr(err, object, "there is no object at 0x%" PRIx64, object));
    return prb_type_at(objects, type, err);
}

/* ---- reading many ---- */

#define TYPE_BYTES 416 /* of a type: what every release reads of it */
#define NAME_BYTES 64
#define MRO_BYTES 96

void prb_types_read(struct prb_objects *objects, const prb_addr *types, size_t count)
{
    for (size_t at = 0; at < count; at += PRB_OBJECTS_BATCH) {
        size_t end = count - at < PRB_OBJECTS_BATCH ? count : at + PRB_OBJECTS_BATCH, many;
        uint64_t name, mro;
        prb_objects_make_room(objects);
        for (size_t i = at; i < end; i++)
            prb_view_prefetch(objects->view, types[i], TYPE_BYTES);
        for (size_t i = at; i < end; i++) {
            if (PRB_GET(objects, types[i], type, name, &name))
                prb_view_prefetch(objects->view, name, NAME_BYTES);
            if (PRB_GET(objects, types[i], type, mro, &mro))
                prb_view_prefetch(objects->view, mro, MRO_BYTES);
        }
        for (size_t i = at; i < end; i++) {
            struct prb_object_type *type = prb_type_at(objects, types[i], NULL);
            if (type && type->python)
                (void)prb_type_mro(objects, type, &many);
        }
    }
}
