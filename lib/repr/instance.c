/*
 * The texts of instances: plain ones with their attributes, dataclasses, enums, exceptions.
 * Sources: Lib/dataclasses.py (Field), Lib/enum.py (_name_, _value_), BaseException_repr in
 * Objects/exceptions.c.
 */
#include <string.h>

#include "repr/writer.h"

enum { INSTANCES_MAX = 2 }; /* attributes of attributes, no deeper */

/* ---- several attributes in one walk ---- */

static bool pick(struct prb_pick *picked, const char *name, prb_addr value)
{
    for (size_t i = 0; picked->names[i]; i++)
        if (!picked->values[i] && !strcmp(picked->names[i], name)) {
            picked->values[i] = value;
            picked->left--;
        }
    return picked->left > 0;
}

static bool pick_attribute(void *context, const char *name, prb_addr value)
{
    return pick(context, name, value);
}

static bool pick_item(void *context, prb_addr key, prb_addr value)
{
    struct prb_pick *picked = context;
    for (size_t i = 0; picked->names[i]; i++)
        if (!picked->values[i] && prb_str_equals(picked->objects, key, picked->names[i]))
            return pick(picked, picked->names[i], value);
    return true;
}

static struct prb_pick pick_start(struct prb_objects *objects, const char *const *names,
                                  prb_addr *values)
{
    struct prb_pick picked = {.objects = objects, .names = names, .values = values};
    for (; names[picked.left]; picked.left++)
        values[picked.left] = 0;
    return picked;
}

bool prb_pick_attributes(struct prb_objects *objects, prb_addr object, struct prb_object_type *type,
                         const char *const *names, prb_addr *values)
{
    struct prb_pick picked = pick_start(objects, names, values);
    return prb_attributes_walk(objects, object, type, pick_attribute, &picked, NULL);
}

bool prb_pick_items(struct prb_objects *objects, prb_addr dict, const char *const *names,
                    prb_addr *values)
{
    struct prb_pick picked = pick_start(objects, names, values);
    return prb_dict_walk(objects, dict, pick_item, &picked, NULL);
}

/* ---- plain instances ---- */

struct attributes {
    struct prb_repr *repr;
    size_t count;
};

static bool write_pair(void *context, const char *name, prb_addr value)
{
    struct attributes *attributes = context;
    struct prb_text *text = &attributes->repr->text;
    if (!prb_repr_item(attributes->repr, &attributes->count))
        return false;
    prb_text_add(text, name);
    prb_text_add(text, "=");
    prb_repr_named_value(attributes->repr, name, value);
    return !text->full;
}

static bool write_attribute(void *context, const char *name, prb_addr value)
{
    struct attributes *attributes = context;
    if (!attributes->count)
        prb_text_add(&attributes->repr->text, " ");
    return write_pair(context, name, value);
}

void prb_repr_instance(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct attributes attributes = {.repr = repr};
    if (repr->instances >= INSTANCES_MAX || repr->depth >= repr->depth_max) {
        prb_repr_short(repr, object, type);
        return;
    }
    for (unsigned i = 0; i < repr->depth; i++)
        if (repr->open[i] == object) {
            prb_repr_short(repr, object, type);
            return;
        }
    repr->open[repr->depth++] = object;
    repr->instances++;
    prb_repr_begin(repr, type);
    bool good =
        prb_attributes_walk(repr->objects, object, type, write_attribute, &attributes, NULL);
    if (!good && !attributes.count)
        prb_text_add(&repr->text, " ");
    prb_repr_walked(repr, good, &attributes.count);
    prb_text_addf(&repr->text, "%s at 0x%llx>", attributes.count ? "" : " object",
                  (unsigned long long)object);
    repr->instances--;
    prb_repr_leave(repr);
}

/* As SimpleNamespace and argparse print themselves from 3.9 on: before, they sort by name. */
void prb_repr_namespace(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct attributes attributes = {.repr = repr};
    const char *name = type->python ? prb_type_short_name(type) : "namespace";
    if (!prb_repr_enter(repr, object, type->python ? "Namespace(...)" : "namespace(...)"))
        return;
    prb_text_add(&repr->text, name);
    prb_text_add(&repr->text, "(");
    bool good = prb_attributes_walk(repr->objects, object, type, write_pair, &attributes, NULL);
    prb_repr_walked(repr, good, &attributes.count);
    prb_text_add(&repr->text, ")");
    prb_repr_leave(repr);
}

/* ---- dataclasses ---- */

struct dataclass {
    struct prb_repr *repr;
    prb_addr object;
    struct prb_object_type *type;
    size_t count;
};

/* Whether a Field is shown: not InitVar, not ClassVar, not repr=False.  Its default goes to
 * *default_out. */
static bool field_shown(struct prb_objects *objects, prb_addr field, prb_addr *default_out)
{
    enum { REPR, KIND, DEFAULT, COUNT };
    static const char *const names[] = {"repr", "_field_type", "default", NULL};
    static const char *const kind_names[] = {"name", NULL};
    prb_addr values[COUNT], kind_name;
    struct prb_int shown;
    struct prb_object_type *type = prb_type_of(objects, field, NULL);
    if (!type || !prb_pick_attributes(objects, field, type, names, values))
        return false;
    if (values[REPR] && prb_object_kind(objects, values[REPR], NULL) == PRB_OBJ_BOOL &&
        prb_int_open(objects, values[REPR], &shown, NULL) && shown.sign == 0)
        return false;
    *default_out = values[DEFAULT];
    struct prb_object_type *kind = values[KIND] ? prb_type_of(objects, values[KIND], NULL) : NULL;
    if (kind && prb_pick_attributes(objects, values[KIND], kind, kind_names, &kind_name) &&
        kind_name)
        return prb_str_equals(objects, kind_name, "_FIELD");
    return true;
}

static bool write_dataclass_field(void *context, prb_addr key, prb_addr field)
{
    struct dataclass *dataclass = context;
    struct prb_repr *repr = dataclass->repr;
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    prb_addr fallback = 0, value = 0;
    if (!field_shown(repr->objects, field, &fallback) ||
        !prb_object_str(repr->objects, key, PRB_TYPE_NAME_MAX, &name, NULL) || !name.data)
        return repr->objects->steps > 0;
    const char *const names[] = {name.data, NULL};
    (void)prb_pick_attributes(repr->objects, dataclass->object, dataclass->type, names, &value);
    /* Not set in the instance: the class's attribute shows through. */
    if (!value && fallback) {
        struct prb_object_type *type = prb_type_of(repr->objects, fallback, NULL);
        value = type && strcmp(type->name, "_MISSING_TYPE") ? fallback : 0;
    }
    if (!value)
        return true;
    if (!prb_repr_item(repr, &dataclass->count))
        return false;
    prb_text_add(&repr->text, name.data);
    prb_text_add(&repr->text, "=");
    prb_repr_named_value(repr, name.data, value);
    return !repr->text.full;
}

void prb_repr_dataclass(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct dataclass dataclass = {.repr = repr, .object = object, .type = type};
    if (!prb_repr_enter(repr, object, "..."))
        return;
    prb_text_add(&repr->text, prb_type_qualname(repr->objects, type));
    prb_text_add(&repr->text, "(");
    bool good = prb_dict_walk(repr->objects, type->fields, write_dataclass_field, &dataclass, NULL);
    prb_repr_walked(repr, good, &dataclass.count);
    prb_text_add(&repr->text, ")");
    prb_repr_leave(repr);
}

/* ---- enums and exceptions ---- */

void prb_repr_enum(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const names[] = {"_name_", "_value_", NULL};
    prb_addr values[2];
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    if (!prb_pick_attributes(repr->objects, object, type, names, values) || !values[1]) {
        prb_repr_short(repr, object, type);
        return;
    }
    if (!prb_repr_enter(repr, object, "..."))
        return;
    prb_text_add(&repr->text, "<");
    prb_text_add(&repr->text, prb_type_short_name(type));
    if (values[0] && prb_object_str(repr->objects, values[0], PRB_TYPE_NAME_MAX, &name, NULL) &&
        name.data) {
        prb_text_add(&repr->text, ".");
        prb_text_add(&repr->text, name.data);
    }
    prb_text_add(&repr->text, ": ");
    prb_repr_value(repr, values[1]);
    prb_text_add(&repr->text, ">");
    prb_repr_leave(repr);
}

struct arguments {
    struct prb_repr *repr;
    size_t count;
};

static bool write_argument(void *context, prb_addr key, prb_addr value)
{
    (void)key;
    struct arguments *arguments = context;
    if (!prb_repr_item(arguments->repr, &arguments->count))
        return false;
    prb_repr_value(arguments->repr, value);
    return !arguments->repr->text.full;
}

void prb_repr_exception(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t args;
    struct arguments arguments = {.repr = repr};
    if (!prb_repr_enter(repr, object, "..."))
        return;
    prb_text_add(&repr->text, prb_type_short_name(type));
    prb_text_add(&repr->text, "(");
    bool good = PRB_GET(repr->objects, object, exception, args, &args) &&
                (!args || prb_sequence_walk(repr->objects, args, PRB_OBJ_TUPLE, write_argument,
                                            &arguments, NULL));
    prb_repr_walked(repr, good, &arguments.count);
    prb_text_add(&repr->text, ")");
    prb_repr_leave(repr);
}
