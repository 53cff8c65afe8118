/*
 * The text of an object: which writer is for which kind, scalars, and what bounds the walk.  Text,
 * depth, items and steps are bounded, so a hostile graph costs no more than a large one.
 */
#include <string.h>

#include "base/secret.h"
#include "repr/writer.h"

/* ---- bounds ---- */

bool prb_repr_enter(struct prb_repr *repr, prb_addr object, const char *again)
{
    for (unsigned i = 0; i < repr->depth; i++)
        if (repr->open[i] == object) {
            prb_text_add(&repr->text, again);
            return false;
        }
    if (repr->depth >= repr->depth_max) {
        prb_text_add(&repr->text, PRB_CUT);
        repr->text.cut = true;
        return false;
    }
    repr->open[repr->depth++] = object;
    return true;
}

void prb_repr_leave(struct prb_repr *repr) { repr->depth--; }

bool prb_repr_item(struct prb_repr *repr, size_t *count)
{
    if (repr->text.full)
        return false;
    if (*count)
        prb_text_add(&repr->text, ", ");
    if (*count >= repr->items_max) {
        prb_text_add(&repr->text, PRB_CUT);
        repr->text.cut = true;
        return false;
    }
    ++*count;
    return true;
}

void prb_repr_walked(struct prb_repr *repr, bool good, size_t *count)
{
    if (good)
        return;
    if (*count)
        prb_text_add(&repr->text, ", ");
    ++*count;
    bool ended = repr->objects->steps == 0;
    prb_text_add(&repr->text, ended ? PRB_CUT : PRB_UNREADABLE);
    repr->text.cut |= ended;
}

/* ---- names ---- */

const char *prb_type_label(struct prb_objects *objects, struct prb_object_type *type)
{
    static const char quiet[] = "collections."; /* the one module whose reprs leave it out */
    if (type->python)
        return prb_type_qualname(objects, type);
    return strncmp(type->name, quiet, sizeof quiet - 1) ? type->name
                                                        : type->name + sizeof quiet - 1;
}

void prb_repr_head(struct prb_repr *repr, const char *name)
{
    prb_text_add(&repr->text, name);
    prb_text_add(&repr->text, "(");
}

void prb_repr_begin(struct prb_repr *repr, struct prb_object_type *type)
{
    const char *module = prb_type_module(repr->objects, type);
    prb_text_add(&repr->text, "<");
    if (strcmp(module, "builtins")) {
        prb_text_add(&repr->text, module);
        prb_text_add(&repr->text, ".");
    }
    prb_text_add(&repr->text, prb_type_qualname(repr->objects, type));
}

void prb_repr_short(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    prb_repr_begin(repr, type);
    prb_text_addf(&repr->text, " object at 0x%llx>", (unsigned long long)object);
}

/* ---- scalars ---- */

static void unless(struct prb_repr *repr, bool good)
{
    if (!good)
        prb_text_add(&repr->text, PRB_UNREADABLE);
}

static void write_none(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)object, (void)type;
    prb_text_add(&repr->text, "None");
}

static void write_ellipsis(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)object, (void)type;
    prb_text_add(&repr->text, "Ellipsis");
}

static void write_not_implemented(struct prb_repr *repr, prb_addr object,
                                  struct prb_object_type *type)
{
    (void)object, (void)type;
    prb_text_add(&repr->text, "NotImplemented");
}

static void write_bool(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    struct prb_int number;
    bool good = prb_int_open(repr->objects, object, &number, NULL);
    prb_text_add(&repr->text, !good ? PRB_UNREADABLE : number.sign ? "True" : "False");
}

static void write_int(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    unless(repr, prb_int_write(repr->objects, object, &repr->text, NULL));
}

static bool get_double(struct prb_repr *repr, prb_addr object, enum prb_field field, double *out)
{
    uint64_t bits;
    if (!prb_objects_field(repr->objects, object, field, &bits))
        return false;
    memcpy(out, &bits, sizeof *out);
    return true;
}

static void write_float(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    double value;
    char out[PRB_FLOAT_TEXT] = PRB_UNREADABLE;
    if (get_double(repr, object, PRB_F_float_value, &value))
        prb_float_format(value, true, out);
    prb_text_add(&repr->text, out);
}

static void write_complex(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    double real, imag;
    if (!get_double(repr, object, PRB_F_complex_real, &real) ||
        !get_double(repr, object, PRB_F_complex_imag, &imag)) {
        unless(repr, false);
        return;
    }
    char first[PRB_FLOAT_TEXT], second[PRB_FLOAT_TEXT];
    prb_float_format(real, false, first);
    prb_float_format(imag, false, second);
    if (!strcmp(first, "0"))
        prb_text_addf(&repr->text, "%sj", second);
    else
        prb_text_addf(&repr->text, "(%s%s%sj)", first, second[0] == '-' ? "" : "+", second);
}

static void write_str(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    unless(repr, prb_str_write(repr->objects, object, &repr->text, NULL));
}

static void write_bytes(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    unless(repr, prb_bytes_write(repr->objects, object, type->kind, &repr->text, NULL));
}

static void write_bytearray(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    prb_text_add(&repr->text, prb_type_label(repr->objects, type));
    prb_text_add(&repr->text, "(");
    write_bytes(repr, object, type);
    prb_text_add(&repr->text, ")");
}

/* ---- which writer ---- */

/* subclass: another class of that kind is written "Name(...)" around it. */
static const struct writer {
    prb_repr_fn *write;
    bool subclass;
} writers[] = {
    [PRB_OBJ_OTHER] = {prb_repr_instance, false},
    [PRB_OBJ_NONE] = {write_none, false},
    [PRB_OBJ_BOOL] = {write_bool, false},
    [PRB_OBJ_INT] = {write_int, true},
    [PRB_OBJ_FLOAT] = {write_float, true},
    [PRB_OBJ_COMPLEX] = {write_complex, true},
    [PRB_OBJ_STR] = {write_str, true},
    [PRB_OBJ_BYTES] = {write_bytes, true},
    [PRB_OBJ_BYTEARRAY] = {write_bytearray, false},
    [PRB_OBJ_TUPLE] = {prb_repr_tuple, true},
    [PRB_OBJ_LIST] = {prb_repr_list, true},
    [PRB_OBJ_DICT] = {prb_repr_dict, true},
    [PRB_OBJ_SET] = {prb_repr_set, false},
    [PRB_OBJ_FROZENSET] = {prb_repr_set, false},
    [PRB_OBJ_DEQUE] = {prb_repr_deque, false},
    [PRB_OBJ_RANGE] = {prb_repr_range, false},
    [PRB_OBJ_SLICE] = {prb_repr_slice, false},
    [PRB_OBJ_EXCEPTION] = {prb_repr_exception, false},
    [PRB_OBJ_MODULE] = {prb_repr_module, false},
    [PRB_OBJ_FUNCTION] = {prb_repr_function, false},
    [PRB_OBJ_BUILTIN] = {prb_repr_builtin, false},
    [PRB_OBJ_METHOD] = {prb_repr_method, false},
    [PRB_OBJ_TYPE] = {prb_repr_type, false},
    [PRB_OBJ_CELL] = {prb_repr_cell, false},
    [PRB_OBJ_GENERATOR] = {prb_repr_generator, false},
    [PRB_OBJ_COROUTINE] = {prb_repr_generator, false},
    [PRB_OBJ_ASYNC_GENERATOR] = {prb_repr_generator, false},
    [PRB_OBJ_CODE] = {prb_repr_code, false},
    [PRB_OBJ_NDARRAY] = {prb_repr_array, false},
    [PRB_OBJ_TENSOR] = {prb_repr_array, false},
};

/* C types without a kind of their own.  subclass: written for the user's classes below it, too. */
static const struct {
    const char *name;
    prb_repr_fn *write;
    bool subclass;
} special_writers[] = {
    {"ellipsis", write_ellipsis},
    {"NotImplementedType", write_not_implemented},
    {"mappingproxy", prb_repr_proxy},
    {"weakref", prb_repr_weakref},
    {"weakref.ReferenceType", prb_repr_weakref}, /* 3.12+ */
    {"datetime.date", prb_repr_date, true},
    {"datetime.time", prb_repr_time, true},
    {"datetime.datetime", prb_repr_datetime, true},
    {"datetime.timedelta", prb_repr_timedelta, true},
    {"datetime.timezone", prb_repr_timezone},
    {"decimal.Decimal", prb_repr_decimal, true},
    {"array.array", prb_repr_array_array, true},
    {"memoryview", prb_repr_memoryview},
    {"dict_keys", prb_repr_dict_view},
    {"dict_values", prb_repr_dict_view},
    {"dict_items", prb_repr_dict_view},
    {"types.SimpleNamespace", prb_repr_namespace},
    {"_thread.lock", prb_repr_lock},
    {"_thread.RLock", prb_repr_rlock},
    {"torch.dtype", prb_repr_torch_constant},
    {"torch.device", prb_repr_torch_constant},
};

static prb_repr_fn *form_writer(enum prb_class_form form)
{
    static prb_repr_fn *const by_form[] = {
        [PRB_CLASS_PLAIN] = NULL,
        [PRB_CLASS_DATACLASS] = prb_repr_dataclass,
        [PRB_CLASS_NAMEDTUPLE] = prb_repr_namedtuple,
        [PRB_CLASS_ENUM] = prb_repr_enum,
        [PRB_CLASS_TORCH_MODULE] = prb_repr_torch_module,
        [PRB_CLASS_TORCH_OPTIMIZER] = prb_repr_torch_optimizer,
        [PRB_CLASS_PATH] = prb_repr_path,
        [PRB_CLASS_UUID] = prb_repr_uuid,
        [PRB_CLASS_FRACTION] = prb_repr_fraction,
        [PRB_CLASS_DECIMAL] = prb_repr_python_decimal,
        [PRB_CLASS_EVENT] = prb_repr_event,
        [PRB_CLASS_SEMAPHORE] = prb_repr_semaphore,
        [PRB_CLASS_CONDITION] = prb_repr_condition,
        [PRB_CLASS_THREAD] = prb_repr_thread,
        [PRB_CLASS_AUTHKEY] = prb_repr_authkey,
        [PRB_CLASS_NAMESPACE] = prb_repr_namespace,
    };
    return by_form[form];
}

static struct writer choose(struct prb_repr *repr, struct prb_object_type *type)
{
    prb_repr_fn *by_form = form_writer(prb_type_form(repr->objects, type));
    if (by_form)
        return (struct writer){by_form, false};
    if (type->kind != PRB_OBJ_OTHER)
        return writers[type->kind];
    for (size_t i = 0; i < sizeof special_writers / sizeof *special_writers; i++)
        if (!strcmp(special_writers[i].name, type->builtin) &&
            (!type->python || special_writers[i].subclass))
            return (struct writer){special_writers[i].write, false};
    if (prb_is_ctypes_simple(type))
        return (struct writer){prb_repr_ctypes_simple, false};
    if (prb_is_array_scalar(repr->objects, type))
        return (struct writer){prb_repr_array_scalar, false};
    if (prb_is_numpy_dtype(repr->objects, type))
        return (struct writer){prb_repr_numpy_dtype, false};
    return writers[PRB_OBJ_OTHER];
}

static void write_value(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct writer writer = choose(repr, type);
    bool wrapped = writer.subclass && !type->exact;
    if (wrapped) {
        prb_text_add(&repr->text, prb_type_label(repr->objects, type));
        prb_text_add(&repr->text, "(");
    }
    writer.write(repr, object, type);
    if (wrapped)
        prb_text_add(&repr->text, ")");
}

void prb_repr_value(struct prb_repr *repr, prb_addr object)
{
    if (repr->text.full)
        return;
    struct prb_object_type *type = prb_type_of(repr->objects, object, NULL);
    if (type)
        write_value(repr, object, type);
    else
        prb_text_add(&repr->text, PRB_UNREADABLE);
}

/* Texts only: a number or a tensor by that name (secret_dim, key) is harmless more often. */
static bool may_be_secret(struct prb_objects *objects, prb_addr object)
{
    enum prb_object_kind kind = prb_object_kind(objects, object, NULL);
    return kind == PRB_OBJ_STR || kind == PRB_OBJ_BYTES || kind == PRB_OBJ_BYTEARRAY;
}

void prb_repr_named_value(struct prb_repr *repr, const char *name, prb_addr object)
{
    if (repr->hide_secrets && prb_secret_variable(name) && may_be_secret(repr->objects, object))
        prb_text_add(&repr->text, PRB_MASK);
    else
        prb_repr_value(repr, object);
}

/* ---- texts that are asked again: the same model, config and self stand in many frames ---- */

enum { TEXT_SLOTS = 4096, TEXT_WORTH = 64 };

static bool same_limits(const struct prb_repr_limits *a, const struct prb_repr_limits *b)
{
    return a->characters == b->characters && a->depth == b->depth && a->items == b->items &&
           a->hide_secrets == b->hide_secrets;
}

/* The entry of an object, or the free one where it belongs; NULL when there is neither. */
static struct prb_cached_text *cached(struct prb_objects *objects, prb_addr object,
                                      const struct prb_repr_limits *limits)
{
    if (!objects->texts && !(objects->texts = calloc(TEXT_SLOTS, sizeof *objects->texts)))
        return NULL;
    size_t slot = (size_t)((object >> 4) * 0x9e3779b97f4a7c15u >> 52) % TEXT_SLOTS;
    for (size_t i = 0; i < TEXT_SLOTS; i++, slot = (slot + 1) % TEXT_SLOTS) {
        struct prb_cached_text *entry = &objects->texts[slot];
        if (!entry->object)
            return objects->text_count < TEXT_SLOTS / 2 ? entry : NULL;
        if (entry->object == object && same_limits(&entry->limits, limits))
            return entry;
    }
    return NULL;
}

static void remember(struct prb_objects *objects, struct prb_cached_text *entry, prb_addr object,
                     const struct prb_repr_limits *limits, const char *text, size_t len)
{
    if (!entry || len < TEXT_WORTH || objects->text_bytes + len > PRB_CACHED_TEXTS_MAX)
        return;
    const char *copy = prb_arena_strndup(&objects->arena, text, len);
    if (!copy)
        return;
    *entry = (struct prb_cached_text){object, *limits, copy, len};
    objects->text_count++;
    objects->text_bytes += len;
}

/* What looks secret in a text, by its form: Bearer X, a URL's password. */
static void mask(struct prb_buf *text, size_t start)
{
    PRB_AUTO(prb_buf) struct prb_buf masked = {0};
    if (!prb_secret_mask(PRB_SECRET_TEXT, text->data + start, text->len - start, &masked))
        return;
    text->len = start;
    prb_buf_add(text, masked.data, masked.len);
}

bool prb_object_repr(struct prb_objects *objects, prb_addr object,
                     const struct prb_repr_limits *asked, struct prb_buf *out,
                     struct prb_error *err)
{
    struct prb_object_type *type = prb_type_of(objects, object, err);
    if (!type)
        return false;
    struct prb_repr_limits limits = asked ? *asked : (struct prb_repr_limits){0};
    limits.characters = limits.characters ? limits.characters : PRB_REPR_CHARACTERS;
    limits.depth = limits.depth ? limits.depth : PRB_REPR_DEPTH;
    limits.items = limits.items ? limits.items : PRB_REPR_ITEMS;
    struct prb_cached_text *entry = cached(objects, object, &limits);
    if (entry && entry->object) {
        prb_buf_add(out, entry->text, entry->len);
        return prb_buf_ok(out) || prb_nomem(err);
    }
    struct prb_repr repr = {
        .objects = objects,
        .depth_max = limits.depth < PRB_REPR_DEPTH_MAX ? limits.depth : PRB_REPR_DEPTH_MAX,
        .items_max = limits.items,
        .hide_secrets = limits.hide_secrets,
    };
    size_t start = out->len;
    prb_text_init(&repr.text, out, limits.characters);
    objects->steps = PRB_REPR_STEPS;
    write_value(&repr, object, type);
    prb_text_finish(&repr.text);
    if (limits.hide_secrets && prb_buf_ok(out))
        mask(out, start);
    if (!prb_buf_ok(out))
        return prb_nomem(err);
    remember(objects, entry, object, &limits, out->data + start, out->len - start);
    return true;
}

bool prb_variable_repr(struct prb_objects *objects, const char *name, prb_addr object,
                       const struct prb_repr_limits *limits, struct prb_buf *out,
                       struct prb_error *err)
{
    if (!limits->hide_secrets || !prb_secret_variable(name) || !may_be_secret(objects, object))
        return prb_object_repr(objects, object, limits, out, err);
    prb_buf_adds(out, PRB_MASK);
    return prb_buf_ok(out) || prb_nomem(err);
}
