/* The texts of containers, as Python prints them: cycles as "[...]", what does not fit as "…". */
#include <string.h>

#include "repr/writer.h"

struct items {
    struct prb_repr *repr;
    size_t count;
};

static void write_item_value(struct prb_repr *repr, prb_addr key, prb_addr value)
{
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    if (repr->hide_secrets && key && prb_object_kind(repr->objects, key, NULL) == PRB_OBJ_STR &&
        prb_object_str(repr->objects, key, PRB_TYPE_NAME_MAX, &name, NULL) && name.data)
        prb_repr_named_value(repr, name.data, value);
    else
        prb_repr_value(repr, value);
}

static bool write_item(void *context, prb_addr key, prb_addr value)
{
    struct items *items = context;
    if (!prb_repr_item(items->repr, &items->count))
        return false;
    if (key) {
        prb_repr_value(items->repr, key);
        prb_text_add(&items->repr->text, ": ");
    }
    write_item_value(items->repr, key, value);
    return !items->repr->text.full;
}

/* The items of a sequence between two brackets; how many were written. */
static size_t write_items(struct prb_repr *repr, prb_addr object, enum prb_object_kind kind,
                          const char *before, const char *after)
{
    struct items items = {.repr = repr};
    prb_text_add(&repr->text, before);
    bool good = kind == PRB_OBJ_DICT
                    ? prb_dict_walk(repr->objects, object, write_item, &items, NULL)
                    : prb_sequence_walk(repr->objects, object, kind, write_item, &items, NULL);
    prb_repr_walked(repr, good, &items.count);
    if (kind == PRB_OBJ_TUPLE && items.count == 1 && *after == ')')
        prb_text_add(&repr->text, ",");
    prb_text_add(&repr->text, after);
    return items.count;
}

void prb_repr_list(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    if (!prb_repr_enter(repr, object, "[...]"))
        return;
    write_items(repr, object, PRB_OBJ_LIST, "[", "]");
    prb_repr_leave(repr);
}

/* What a defaultdict makes its values with stands before them. */
static void write_factory(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    size_t count;
    uint64_t factory;
    const struct prb_member *members = prb_type_members(repr->objects, type, &count);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(members[i].name, "default_factory") &&
            prb_objects_words(repr->objects, object + (uint64_t)members[i].offset, &factory, 1) &&
            factory) {
            prb_repr_value(repr, factory);
            prb_text_add(&repr->text, ", ");
        }
}

void prb_repr_dict(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    if (!prb_repr_enter(repr, object, "{...}"))
        return;
    if (!type->exact && !type->python)
        write_factory(repr, object, type);
    write_items(repr, object, PRB_OBJ_DICT, "{", "}");
    prb_repr_leave(repr);
}

/* Tuples with named fields made in C (time.struct_time): a member for each item. */
struct named_items {
    struct prb_repr *repr;
    const struct prb_member *members;
    size_t member_count, index, count;
    int64_t first;
};

static bool write_named_item(void *context, prb_addr key, prb_addr value)
{
    (void)key;
    struct named_items *items = context;
    int64_t offset = items->first + 8 * (int64_t)items->index++;
    if (!prb_repr_item(items->repr, &items->count))
        return false;
    for (size_t i = 0; i < items->member_count; i++)
        if (items->members[i].offset == offset) {
            prb_text_add(&items->repr->text, items->members[i].name);
            prb_text_add(&items->repr->text, "=");
        }
    prb_repr_value(items->repr, value);
    return !items->repr->text.full;
}

void prb_repr_tuple(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct named_items named = {.repr = repr,
                                .first = PRB_OFF(repr->objects->layout, tuple, items)};
    if (!prb_repr_enter(repr, object, "(...)"))
        return;
    if (!type->exact && !type->python)
        named.members = prb_type_members(repr->objects, type, &named.member_count);
    if (named.member_count) {
        bool good =
            prb_sequence_walk(repr->objects, object, PRB_OBJ_TUPLE, write_named_item, &named, NULL);
        prb_repr_walked(repr, good, &named.count);
    } else if (!strcmp(type->name, "torch.Size")) {
        write_items(repr, object, PRB_OBJ_TUPLE, "[", "]");
    } else {
        write_items(repr, object, PRB_OBJ_TUPLE, "(", ")");
    }
    prb_repr_leave(repr);
}

void prb_repr_set(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const again[] = {"set(...)", "frozenset(...)"};
    bool bare = type->exact && type->kind == PRB_OBJ_SET;
    uint64_t used = 1;
    if (!prb_repr_enter(repr, object, again[type->kind == PRB_OBJ_FROZENSET]))
        return;
    (void)PRB_GET(repr->objects, object, set, used, &used);
    if (!bare || !used) {
        prb_text_add(&repr->text, prb_type_label(repr->objects, type));
        prb_text_add(&repr->text, "(");
    }
    if (used)
        write_items(repr, object, type->kind, "{", "}");
    if (!bare || !used)
        prb_text_add(&repr->text, ")");
    prb_repr_leave(repr);
}

void prb_repr_deque(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    if (!prb_repr_enter(repr, object, "[...]"))
        return;
    uint64_t maxlen;
    prb_text_add(&repr->text, prb_type_label(repr->objects, type));
    prb_text_add(&repr->text, "(");
    write_items(repr, object, PRB_OBJ_DEQUE, "[", "]");
    if (PRB_GET(repr->objects, object, deque, maxlen, &maxlen) && (int64_t)maxlen >= 0)
        prb_text_addf(&repr->text, ", maxlen=%lld", (long long)maxlen);
    prb_text_add(&repr->text, ")");
    prb_repr_leave(repr);
}

/* ---- named tuples ---- */

struct fields {
    struct prb_repr *repr;
    prb_addr names;
    uint64_t name_count;
    size_t index, count;
};

static bool write_field(void *context, prb_addr key, prb_addr value)
{
    (void)key;
    struct fields *fields = context;
    struct prb_objects *objects = fields->repr->objects;
    uint64_t name;
    if (!prb_repr_item(fields->repr, &fields->count))
        return false;
    prb_addr at =
        fields->names + (uint64_t)PRB_OFF(objects->layout, tuple, items) + 8 * fields->index;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (fields->index++ < fields->name_count && prb_objects_words(objects, at, &name, 1)) {
        if (prb_object_str(objects, name, PRB_TYPE_NAME_MAX, &text, NULL))
            prb_text_add(&fields->repr->text, text.data ? text.data : "");
        prb_text_add(&fields->repr->text, "=");
    }
    prb_repr_named_value(fields->repr, text.data ? text.data : "", value);
    return !fields->repr->text.full;
}

void prb_repr_namedtuple(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct fields fields = {.repr = repr, .names = type->fields};
    if (!prb_repr_enter(repr, object, "(...)"))
        return;
    (void)PRB_GET(repr->objects, type->fields, tuple, size, &fields.name_count);
    prb_text_add(&repr->text, prb_type_short_name(type));
    prb_text_add(&repr->text, "(");
    bool good = prb_sequence_walk(repr->objects, object, PRB_OBJ_TUPLE, write_field, &fields, NULL);
    prb_repr_walked(repr, good, &fields.count);
    prb_text_add(&repr->text, ")");
    prb_repr_leave(repr);
}
