/*
 * The texts of the standard library's other usual types, as their repr() gives them; dates.c,
 * numbers.c and locks.c have the rest.  Sources: Objects/dictobject.c, Lib/pathlib, Lib/uuid.py,
 * Lib/fractions.py of 3.6 to 3.15.
 *
 * To add a type made in C: its fields (py/layout/fields.def), a writer here, its name in repr.c.
 * One written in Python: its class in forms_by_name (py/object/class.c), a writer here, its form
 * in repr.c.  Then a value in tests/targets/values.py.
 */
#include <inttypes.h>
#include <string.h>

#include "repr/writer.h"

/* ---- views ---- */

void prb_repr_memoryview(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    (void)type;
    prb_text_addf(&repr->text, "<memory at 0x%" PRIx64 ">", object);
}

struct view {
    struct prb_repr *repr;
    char kind; /* of dict_keys, dict_values, dict_items: the letter after the "_" */
    size_t count;
};

static bool write_viewed(void *context, prb_addr key, prb_addr value)
{
    struct view *view = context;
    struct prb_repr *repr = view->repr;
    if (!prb_repr_item(repr, &view->count))
        return false;
    if (view->kind == 'i')
        prb_text_add(&repr->text, "(");
    if (view->kind != 'v')
        prb_repr_value(repr, key);
    if (view->kind == 'i')
        prb_text_add(&repr->text, ", ");
    if (view->kind != 'k')
        prb_repr_value(repr, value);
    if (view->kind == 'i')
        prb_text_add(&repr->text, ")");
    return !repr->text.full;
}

void prb_repr_dict_view(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    struct view view = {.repr = repr, .kind = strchr(type->name, '_')[1]};
    uint64_t dict;
    if (!prb_repr_enter(repr, object, "..."))
        return;
    prb_repr_head(repr, type->name);
    prb_text_add(&repr->text, "[");
    bool good = PRB_GET(repr->objects, object, dict_view, dict, &dict) &&
                prb_dict_walk(repr->objects, dict, write_viewed, &view, NULL);
    prb_repr_walked(repr, good, &view.count);
    prb_text_add(&repr->text, "])");
    prb_repr_leave(repr);
}

/* ---- UUID, Fraction, Path ---- */

void prb_repr_uuid(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    enum { DIGITS = 5 }; /* of 30 bits in 128 */
    static const char *const names[] = {"int", NULL};
    prb_addr value = 0;
    struct prb_int number = {.count = DIGITS + 1};
    const uint32_t *digits = NULL;
    if (prb_pick_attributes(repr->objects, object, type, names, &value) && value &&
        prb_int_open(repr->objects, value, &number, NULL) && number.count <= DIGITS && number.sign)
        digits = prb_objects_get(repr->objects, number.digits, number.count * sizeof *digits);
    if (!digits && (!value || number.sign || number.count > DIGITS)) {
        prb_repr_short(repr, object, type);
        return;
    }
    unsigned __int128 bits = 0;
    for (uint64_t i = number.sign ? number.count : 0; i > 0; i--)
        bits = bits << 30 | digits[i - 1];
    uint64_t high = (uint64_t)(bits >> 64), low = (uint64_t)bits;
    prb_repr_head(repr, prb_type_short_name(type));
    prb_text_addf(&repr->text, "'%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64, high >> 32,
                  high >> 16 & 0xffff, high & 0xffff);
    prb_text_addf(&repr->text, "-%04" PRIx64 "-%012" PRIx64 "')", low >> 48, low & 0xffffffffffff);
}

void prb_repr_fraction(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    static const char *const names[] = {"_numerator", "_denominator", NULL};
    prb_addr values[2];
    if (!prb_pick_attributes(repr->objects, object, type, names, values) || !values[0] ||
        !values[1]) {
        prb_repr_short(repr, object, type);
        return;
    }
    prb_repr_head(repr, prb_type_short_name(type));
    prb_repr_value(repr, values[0]);
    prb_text_add(&repr->text, ", ");
    prb_repr_value(repr, values[1]);
    prb_text_add(&repr->text, ")");
}

struct path {
    struct prb_repr *repr;
    struct prb_buf *text;
};

/* One segment more; an absolute one begins anew. */
static bool add_segment(void *context, prb_addr key, prb_addr segment)
{
    (void)key;
    struct path *path = context;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_object_str(path->repr->objects, segment, PRB_REPR_CHARACTERS, &text, NULL))
        return false;
    if (!text.data)
        return true;
    if (*text.data == '/')
        path->text->len = 0;
    else if (path->text->len && path->text->data[path->text->len - 1] != '/')
        prb_buf_addc(path->text, '/');
    prb_buf_adds(path->text, text.data);
    return true;
}

/* Without "." and empty segments, as PurePosixPath leaves them out. */
static void add_path(struct prb_repr *repr, const char *path)
{
    size_t slashes = strspn(path, "/");
    bool none = true, quote = strchr(path, '\'') != NULL && !strchr(path, '"');
    prb_text_add(&repr->text, quote ? "\"" : "'");
    prb_text_add(&repr->text, slashes == 2 ? "//" : slashes ? "/" : "");
    for (const char *at = path + slashes; *at; at += strspn(at, "/")) {
        size_t len = strcspn(at, "/");
        if (len != 1 || *at != '.') {
            PRB_AUTO(prb_buf) struct prb_buf part = {0};
            for (size_t i = 0; i < len; i++) {
                if (at[i] == '\\' || (at[i] == '\'' && !quote))
                    prb_buf_addc(&part, '\\');
                prb_buf_addc(&part, at[i]);
            }
            prb_text_add(&repr->text, none ? "" : "/");
            prb_text_add(&repr->text, part.data ? part.data : "");
            none = false;
        }
        at += len;
    }
    prb_text_add(&repr->text, none && !slashes ? "." : "");
    prb_text_add(&repr->text, quote ? "\"" : "'");
}

/* Its segments: _raw_paths from 3.12 on, _parts before. */
void prb_repr_path(struct prb_repr *repr, prb_addr object, struct prb_object_type *type)
{
    enum { RAW, PARTS, COUNT };
    static const char *const names[] = {"_raw_paths", "_parts", NULL};
    prb_addr values[COUNT];
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    struct path path = {.repr = repr, .text = &text};
    bool good = prb_pick_attributes(repr->objects, object, type, names, values);
    prb_addr segments = values[RAW] ? values[RAW] : values[PARTS];
    if (!good || !segments ||
        !prb_sequence_each(repr->objects, segments, add_segment, &path, NULL) ||
        !prb_buf_ok(&text)) {
        prb_repr_short(repr, object, type);
    } else {
        prb_repr_head(repr, prb_type_short_name(type));
        add_path(repr, text.data && text.len ? text.data : "");
        prb_text_add(&repr->text, ")");
    }
}
