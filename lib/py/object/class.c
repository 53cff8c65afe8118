/*
 * Classes in detail: module and qualified name, __slots__, and the forms that deserve their own
 * text. A class's dict is only read for heap types: from 3.12 static ones keep theirs elsewhere.
 */
#include <string.h>

#include "py/object/reader.h"

/* ---- names in class dicts ---- */

static const char *const known_names[PRB_NAME_COUNT] = {
    [PRB_NAME_MODULE] = "__module__",
    [PRB_NAME_DATACLASS_FIELDS] = "__dataclass_fields__",
    [PRB_NAME_FIELDS] = "_fields",
};

struct search {
    struct prb_objects *objects;
    uint64_t found[PRB_NAME_COUNT]; /* value by name */
    unsigned wanted;                /* a bit for each name */
};

static bool search_item(void *context, prb_addr key, prb_addr value)
{
    struct search *search = context;
    for (int i = 0; i < PRB_NAME_COUNT; i++) {
        if (!(search->wanted >> i & 1))
            continue;
        prb_addr *interned = &search->objects->names[i];
        if (*interned ? *interned != key : !prb_str_equals(search->objects, key, known_names[i]))
            continue;
        *interned = key;
        search->found[i] = value;
        search->wanted &= ~(1u << i);
    }
    return search->wanted != 0;
}

static void search_class(struct prb_objects *objects, const struct prb_object_type *type,
                         unsigned wanted, struct search *out)
{
    *out = (struct search){.objects = objects, .wanted = wanted};
    if (!(type->flags & PRB_TPFLAG_HEAP) || !type->dict)
        return;
    size_t steps = objects->steps;
    objects->steps = PRB_CLASS_NAMES_MAX;
    (void)prb_dict_walk(objects, type->dict, search_item, out, NULL);
    objects->steps = steps;
}

/* ---- module and qualified name ---- */

const char *prb_type_module(struct prb_objects *objects, struct prb_object_type *type)
{
    if (type->module)
        return type->module;
    const char *dot = strrchr(type->name, '.');
    if (dot) {
        type->module = prb_arena_strndup(&objects->arena, type->name, (size_t)(dot - type->name));
    } else if (!type->python) {
        type->module = "builtins";
    } else {
        struct search search;
        search_class(objects, type, 1u << PRB_NAME_MODULE, &search);
        if (search.found[PRB_NAME_MODULE])
            type->module =
                prb_objects_strdup(objects, search.found[PRB_NAME_MODULE], PRB_TYPE_NAME_MAX);
    }
    if (!type->module)
        type->module = "?";
    return type->module;
}

const char *prb_type_qualname(struct prb_objects *objects, struct prb_object_type *type)
{
    if (type->qualname)
        return type->qualname;
    uint64_t qualname;
    if (type->flags & PRB_TPFLAG_HEAP &&
        PRB_GET(objects, type->addr, type, heap_qualname, &qualname))
        type->qualname = prb_objects_strdup(objects, qualname, PRB_TYPE_NAME_MAX);
    if (!type->qualname) {
        const char *dot = strrchr(type->name, '.');
        type->qualname = dot ? dot + 1 : type->name;
    }
    return type->qualname;
}

void prb_type_full_name(struct prb_objects *objects, struct prb_object_type *type,
                        struct prb_buf *out)
{
    const char *module = prb_type_module(objects, type);
    if (strcmp(module, "builtins"))
        prb_buf_addf(out, "%s.", module);
    prb_buf_adds(out, prb_type_qualname(objects, type));
}

/* ---- what it derives from ---- */

const prb_addr *prb_type_mro(struct prb_objects *objects, struct prb_object_type *type,
                             size_t *count_out)
{
    uint64_t mro, size;
    if (!type->mro && PRB_GET(objects, type->addr, type, mro, &mro) &&
        PRB_GET(objects, mro, tuple, size, &size)) {
        size_t count = size < PRB_MRO_MAX ? (size_t)size : PRB_MRO_MAX;
        prb_addr items = mro + (uint64_t)PRB_OFF(objects->layout, tuple, items);
        prb_addr *classes = prb_arena_alloc(&objects->arena, count * sizeof *classes);
        if (classes && prb_objects_words(objects, items, classes, count)) {
            type->mro = classes;
            type->mro_count = count;
        }
    }
    *count_out = type->mro_count;
    return type->mro;
}

bool prb_type_derives(struct prb_objects *objects, struct prb_object_type *type, const char *name,
                      const char *module)
{
    size_t count = 0;
    const prb_addr *mro = type->python ? prb_type_mro(objects, type, &count) : NULL;
    for (size_t i = 0; i < count; i++) {
        struct prb_object_type *one = prb_type_at(objects, mro[i], NULL);
        if (one && one->python && strcmp(one->name, name) == 0 &&
            strcmp(prb_type_module(objects, one), module) == 0)
            return true;
    }
    return false;
}

/* ---- forms ---- */

/* Base classes written in Python, whose instances have a text of their own. */
static const struct {
    const char *name, *module;
    enum prb_class_form form;
} forms_by_name[] = {
    {"Enum", "enum", PRB_CLASS_ENUM},
    {"Module", "torch.nn.modules.module", PRB_CLASS_TORCH_MODULE},
    {"Optimizer", "torch.optim.optimizer", PRB_CLASS_TORCH_OPTIMIZER},
    {"PurePath", "pathlib", PRB_CLASS_PATH},
    {"PurePath", "pathlib._local", PRB_CLASS_PATH}, /* 3.13 */
    {"UUID", "uuid", PRB_CLASS_UUID},
    {"Fraction", "fractions", PRB_CLASS_FRACTION},
    {"Decimal", "decimal", PRB_CLASS_DECIMAL}, /* _pydecimal's */
    {"Event", "threading", PRB_CLASS_EVENT},
    {"Semaphore", "threading", PRB_CLASS_SEMAPHORE},
    {"Condition", "threading", PRB_CLASS_CONDITION},
    {"Thread", "threading", PRB_CLASS_THREAD},
    {"AuthenticationString", "multiprocessing.process", PRB_CLASS_AUTHKEY},
    {"Namespace", "argparse", PRB_CLASS_NAMESPACE},
};

static enum prb_class_form form_by_name(struct prb_objects *objects, struct prb_object_type *type)
{
    for (size_t i = 0; i < sizeof forms_by_name / sizeof *forms_by_name; i++)
        if (!strcmp(type->name, forms_by_name[i].name) &&
            !strcmp(prb_type_module(objects, type), forms_by_name[i].module))
            return forms_by_name[i].form;
    return PRB_CLASS_PLAIN;
}

static void form_by_dict(struct prb_objects *objects, struct prb_object_type *type)
{
    struct search search;
    search_class(objects, type, 1u << PRB_NAME_DATACLASS_FIELDS | 1u << PRB_NAME_FIELDS, &search);
    uint64_t dataclass = search.found[PRB_NAME_DATACLASS_FIELDS],
             fields = search.found[PRB_NAME_FIELDS];
    if (dataclass && prb_object_kind(objects, dataclass, NULL) == PRB_OBJ_DICT) {
        type->form = PRB_CLASS_DATACLASS;
        type->fields = dataclass;
    } else if (fields && type->kind == PRB_OBJ_TUPLE &&
               prb_object_kind(objects, fields, NULL) == PRB_OBJ_TUPLE) {
        type->form = PRB_CLASS_NAMEDTUPLE;
        type->fields = fields;
    } else {
        type->form = form_by_name(objects, type);
    }
}

/* Attributes of a class come from the first class of its method resolution order that has them. */
enum prb_class_form prb_type_form(struct prb_objects *objects, struct prb_object_type *type)
{
    if (type->form_known || !type->python)
        return type->form;
    type->form_known = true; /* first, so that a cycle of classes ends */
    size_t count;
    const prb_addr *mro = prb_type_mro(objects, type, &count);
    for (size_t i = 0; i < count && type->form == PRB_CLASS_PLAIN; i++) {
        struct prb_object_type *base =
            mro[i] == type->addr ? type : prb_type_at(objects, mro[i], NULL);
        if (!base || !base->python)
            continue;
        if (base != type && base->form_known) {
            type->form = base->form;
            type->fields = base->fields;
        } else if (base == type) {
            form_by_dict(objects, type);
        } else {
            (void)prb_type_form(objects, base);
            type->form = base->form;
            type->fields = base->fields;
        }
    }
    return type->form;
}

/* ---- members ---- */

enum { MEMBER_T_OBJECT = 6 }; /* Include/structmember.h; T_OBJECT_EX is a number of the layout */

static bool member_at(struct prb_objects *objects, const struct prb_object_type *type, prb_addr def,
                      struct prb_member *out, bool *end_out)
{
    uint64_t name, kind, offset;
    *end_out = true;
    if (!PRB_GET(objects, def, member_def, name, &name) || !name ||
        !PRB_GET(objects, def, member_def, type, &kind) ||
        !PRB_GET(objects, def, member_def, offset, &offset))
        return false;
    *end_out = false;
    int object_ex = PRB_NUM(objects->layout, member_object_ex);
    if ((kind != MEMBER_T_OBJECT && (int64_t)kind != object_ex) || offset < 16 || offset % 8 ||
        offset > (uint64_t)type->basicsize + PRB_BASICSIZE_MAX)
        return false;
    out->offset = (int64_t)offset;
    out->name = prb_objects_cstring(objects, name, PRB_TYPE_NAME_MAX);
    return out->name != NULL;
}

const struct prb_member *prb_type_members(struct prb_objects *objects, struct prb_object_type *type,
                                          size_t *count_out)
{
    uint64_t def;
    if (!type->members_known && PRB_GET(objects, type->addr, type, members, &def) && def &&
        PRB_HAS(objects->layout, member_def, size)) {
        PRB_AUTO_FREE struct prb_member *list = NULL;
        size_t count = 0, cap = 0;
        bool end = false;
        for (int i = 0; i < PRB_MEMBERS_MAX && !end && PRB_GROW(list, count, cap); i++) {
            if (member_at(objects, type, def, &list[count], &end))
                count++;
            def += (uint64_t)PRB_OFF(objects->layout, member_def, size);
        }
        type->members = prb_arena_alloc(&objects->arena, count * sizeof *list);
        if (type->members && count) {
            memcpy(type->members, list, count * sizeof *list);
            type->member_count = count;
        }
    }
    type->members_known = true;
    *count_out = type->member_count;
    return type->members;
}

const char *prb_type_short_name(const struct prb_object_type *type)
{
    const char *dot = strrchr(type->name, '.');
    return dot ? dot + 1 : type->name;
}
