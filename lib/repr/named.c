/* The texts of what is shown by its name: modules, functions, types, generators, code; and small
 * objects that contain others. */
#include <inttypes.h>
#include <string.h>

#include "repr/writer.h"

/* The text of a str field, or "?". */
static void add_name(struct prb_repr *repr, prb_addr object, enum prb_field field)
{
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    uint64_t str;
    bool good = prb_objects_field(repr->objects, object, field, &str) &&
                prb_object_str(repr->objects, str, PRB_TYPE_NAME_MAX, &name, NULL);
    prb_text_add(&repr->text, !good ? "?" : name.data ? name.data : "");
}

static void add_address(struct prb_repr *repr, prb_addr object)
{
    prb_text_addf(&repr->text, " at 0x%" PRIx64, object);
}

/* The classes of Lib/importlib/_bootstrap.py that load modules without a file. */
static const struct {
    const char *name, *origin;
} loaders[] = {{"BuiltinImporter", " (built-in)"}, {"FrozenImporter", " (frozen)"}};

static bool add_loader(struct prb_repr *repr, prb_addr loader)
{
    struct prb_object_type *type = loader ? prb_type_at(repr->objects, loader, NULL) : NULL;
    for (size_t i = 0; type && i < sizeof loaders / sizeof *loaders; i++)
        if (!strcmp(loaders[i].name, type->name)) {
            prb_text_add(&repr->text, loaders[i].origin);
            return true;
        }
    return false;
}

/* Where a module came from, as its spec says; false when there is no such spec. */
static bool add_origin(struct prb_repr *repr, prb_addr spec)
{
    enum { ORIGIN, HAS_FILE, LOADER, COUNT };
    static const char *const names[] = {"origin", "_set_fileattr", "loader", NULL};
    struct prb_objects *objects = repr->objects;
    prb_addr values[COUNT];
    struct prb_int has_file;
    struct prb_object_type *type = spec ? prb_type_of(objects, spec, NULL) : NULL;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!type || !prb_pick_attributes(objects, spec, type, names, values))
        return false;
    if (!values[ORIGIN] || !values[HAS_FILE] ||
        !prb_object_str(objects, values[ORIGIN], PRB_TYPE_NAME_MAX, &text, NULL) ||
        !prb_int_open(objects, values[HAS_FILE], &has_file, NULL))
        return add_loader(repr, values[LOADER]);
    if (has_file.sign) {
        prb_text_add(&repr->text, " from ");
        prb_repr_value(repr, values[ORIGIN]);
    } else {
        prb_text_add(&repr->text, " (");
        prb_text_add(&repr->text, text.data ? text.data : "");
        prb_text_add(&repr->text, ")");
    }
    return true;
}

void prb_repr_module(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    enum { NAME, FILE_, SPEC, COUNT };
    static const char *const names[] = {"__name__", "__file__", "__spec__", NULL};
    prb_addr values[COUNT] = {0};
    uint64_t dict;
    (void)type;
    if (PRB_GET(repr->objects, object, module, dict, &dict) && dict)
        (void)prb_pick_items(repr->objects, dict, names, values);
    prb_text_add(&repr->text, "<module ");
    prb_repr_value(repr, values[NAME]);
    if (!add_origin(repr, values[SPEC]) && values[FILE_]) {
        prb_text_add(&repr->text, " from ");
        prb_repr_value(repr, values[FILE_]);
    }
    prb_text_add(&repr->text, ">");
}

void prb_repr_function(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    prb_text_add(&repr->text, "<function ");
    add_name(repr, object, PRB_F_function_qualname);
    add_address(repr, object);
    prb_text_add(&repr->text, ">");
}

void prb_repr_builtin(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct prb_objects *objects = repr->objects;
    uint64_t def, name_at, self = 0;
    const char *name = NULL;
    (void)type;
    if (PRB_GET(objects, object, builtin, def, &def) &&
        PRB_GET(objects, def, method_def, name, &name_at))
        name = prb_objects_cstring(objects, name_at, PRB_TYPE_NAME_MAX);
    (void)PRB_GET(objects, object, builtin, self, &self);
    struct prb_object_type *owner = self ? prb_type_of(objects, self, NULL) : NULL;
    bool method = owner && owner->kind != PRB_OBJ_MODULE;
    prb_text_add(&repr->text, method ? "<built-in method " : "<built-in function ");
    prb_text_add(&repr->text, name ? name : "?");
    if (method) {
        prb_text_add(&repr->text, " of ");
        prb_text_add(&repr->text, owner->name);
        prb_text_add(&repr->text, " object");
        add_address(repr, self);
    }
    prb_text_add(&repr->text, ">");
}

void prb_repr_method(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t func = 0, self = 0;
    (void)type;
    (void)PRB_GET(repr->objects, object, method, func, &func);
    (void)PRB_GET(repr->objects, object, method, self, &self);
    prb_text_add(&repr->text, "<bound method ");
    struct prb_object_type *callee = prb_type_of(repr->objects, func, NULL);
    if (callee && callee->kind == PRB_OBJ_FUNCTION)
        add_name(repr, func, PRB_F_function_qualname);
    else
        prb_text_add(&repr->text, "?");
    prb_text_add(&repr->text, " of ");
    struct prb_object_type *owner = prb_type_of(repr->objects, self, NULL);
    if (!owner)
        prb_text_add(&repr->text, PRB_UNREADABLE);
    else if (owner->kind == PRB_OBJ_TYPE)
        prb_repr_type(repr, self, owner);
    else
        prb_repr_short(repr, self, owner);
    prb_text_add(&repr->text, ">");
}

void prb_repr_type(struct prb_repr *repr, prb_addr object, struct prb_object_type *metatype)
{
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    struct prb_object_type *type = prb_type_at(repr->objects, object, NULL);
    if (!type) {
        prb_text_add(&repr->text, PRB_UNREADABLE);
        return;
    }
    bool is_enum = !strcmp(metatype->name, "EnumMeta") || !strcmp(metatype->name, "EnumType");
    if (is_enum)
        prb_buf_adds(&name, prb_type_short_name(type));
    else
        prb_type_full_name(repr->objects, type, &name);
    prb_text_add(&repr->text, is_enum ? "<enum '" : "<class '");
    prb_text_add(&repr->text, name.data ? name.data : "");
    prb_text_add(&repr->text, "'>");
}

void prb_repr_cell(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t content;
    (void)type;
    if (!PRB_GET(repr->objects, object, cell, ref, &content)) {
        prb_text_add(&repr->text, PRB_UNREADABLE);
    } else if (!content) {
        prb_text_add(&repr->text, "<cell");
        add_address(repr, object);
        prb_text_add(&repr->text, ": empty>");
    } else if (prb_repr_enter(repr, object, "...")) {
        prb_repr_value(repr, content);
        prb_repr_leave(repr);
    }
}

void prb_repr_generator(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    prb_text_add(&repr->text, "<");
    prb_text_add(&repr->text, type->builtin);
    prb_text_add(&repr->text, " object ");
    uint64_t code;
    if (PRB_HAS(repr->objects->layout, gen, qualname))
        add_name(repr, object, PRB_F_gen_qualname);
    else if (PRB_GET(repr->objects, object, gen, code, &code))
        add_name(repr, code, PRB_F_code_name);
    add_address(repr, object);
    prb_text_add(&repr->text, ">");
}

void prb_repr_code(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t line = 0, filename = 0;
    (void)type;
    prb_text_add(&repr->text, "<code object ");
    add_name(repr, object, PRB_F_code_name);
    add_address(repr, object);
    prb_text_add(&repr->text, ", file \"");
    add_name(repr, object, PRB_F_code_filename);
    (void)filename;
    (void)PRB_GET(repr->objects, object, code, firstlineno, &line);
    prb_text_addf(&repr->text, "\", line %d>", (int32_t)(uint32_t)line);
}

/* ---- small objects that hold others ---- */

static void add_field(struct prb_repr *repr, prb_addr object, enum prb_field field)
{
    uint64_t value;
    if (prb_objects_field(repr->objects, object, field, &value))
        prb_repr_value(repr, value);
    else
        prb_text_add(&repr->text, PRB_UNREADABLE);
}

void prb_repr_range(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t step;
    int64_t by = 0;
    (void)type;
    prb_text_add(&repr->text, "range(");
    add_field(repr, object, PRB_F_range_start);
    prb_text_add(&repr->text, ", ");
    add_field(repr, object, PRB_F_range_stop);
    if (!PRB_GET(repr->objects, object, range, step, &step) ||
        !prb_object_int(repr->objects, step, &by, NULL) || by != 1) {
        prb_text_add(&repr->text, ", ");
        add_field(repr, object, PRB_F_range_step);
    }
    prb_text_add(&repr->text, ")");
}

void prb_repr_slice(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    if (!prb_repr_enter(repr, object, "..."))
        return;
    prb_text_add(&repr->text, "slice(");
    add_field(repr, object, PRB_F_slice_start);
    prb_text_add(&repr->text, ", ");
    add_field(repr, object, PRB_F_slice_stop);
    prb_text_add(&repr->text, ", ");
    add_field(repr, object, PRB_F_slice_step);
    prb_text_add(&repr->text, ")");
    prb_repr_leave(repr);
}

void prb_repr_proxy(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    if (!prb_repr_enter(repr, object, "..."))
        return;
    prb_text_add(&repr->text, "mappingproxy(");
    add_field(repr, object, PRB_F_mapping_proxy_mapping);
    prb_text_add(&repr->text, ")");
    prb_repr_leave(repr);
}

void prb_repr_weakref(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    uint64_t referent = 0;
    (void)type;
    bool good = PRB_GET(repr->objects, object, weakref, object, &referent);
    struct prb_object_type *to = good ? prb_type_of(repr->objects, referent, NULL) : NULL;
    prb_text_add(&repr->text, "<weakref");
    add_address(repr, object);
    if (to && to->kind != PRB_OBJ_NONE) {
        prb_text_add(&repr->text, "; to '");
        prb_text_add(&repr->text, to->name);
        prb_text_add(&repr->text, "'");
        add_address(repr, referent);
    } else {
        prb_text_add(&repr->text, good ? "; dead" : "; " PRB_UNREADABLE);
    }
    prb_text_add(&repr->text, ">");
}
