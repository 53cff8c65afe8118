/* Local variables: fast locals, cells and free variables of the frame, or the mapping of a module
 * or class body. */
#include "py/locals.h"

#include "py/object/reader.h"

#include <string.h>

/* A word of localsplus: an object, or (3.14+) a number or mark by its low bits
 * (Include/internal/pycore_stackref.h). */
static bool untag(const struct prb_layout *layout, uint64_t word, struct prb_variable *out)
{
    if (!PRB_IS(layout, reference, TAGGED)) {
        out->object = word;
        return word != 0;
    }
    uint64_t mask = (uint64_t)PRB_NUM(layout, reference_mask), tag = word & mask;
    if (tag == (uint64_t)PRB_NUM(layout, reference_integer)) {
        out->is_number = true;
        out->number = (int64_t)word >> 2;
        return true;
    }
    if (PRB_NUM(layout, reference_invalid) != PRB_NONE &&
        tag == (uint64_t)PRB_NUM(layout, reference_invalid))
        return false;
    out->object = word & ~mask;
    return out->object != 0;
}

/* A variable that closures share lives in a cell; unset ones are empty cells. */
static bool open_cell(struct prb_objects *objects, struct prb_variable *variable)
{
    if (variable->is_number || prb_object_kind(objects, variable->object, NULL) != PRB_OBJ_CELL)
        return true;
    uint64_t inside = 0;
    if (!PRB_FIELD_OF(prb_objects_py(objects), variable->object, cell, ref, &inside, NULL))
        return true;
    variable->object = inside;
    return inside != 0;
}

/* They are read next: read them together. */
static void want_objects(struct prb_objects *objects, const uint64_t *words, size_t count)
{
    const struct prb_layout *layout = &prb_objects_py(objects)->layout;
    for (size_t i = 0; i < count; i++) {
        struct prb_variable variable = {0};
        if (untag(layout, words[i], &variable) && !variable.is_number)
            prb_objects_prefetch(objects, &variable.object, 1);
    }
}

static bool each_fast(struct prb_objects *objects, const struct prb_raw_frame *frame,
                      const struct prb_code_object *code, prb_variable_fn *each, void *context,
                      struct prb_error *err)
{
    struct prb_py *py = prb_objects_py(objects);
    size_t count = code->variable_count < PRB_LOCALS_MAX ? code->variable_count : PRB_LOCALS_MAX;
    PRB_AUTO_FREE uint64_t *words = calloc(count + 1, sizeof *words);
    if (!words)
        return prb_nomem(err);
    prb_addr at = frame->frame + (prb_addr)PRB_OFF(&py->layout, frame, localsplus);
    if (count && !prb_objects_words(objects, at, words, count))
        return prb_fail_addr(err, at, "locals of %s", code->name);
    want_objects(objects, words, count);
    for (size_t i = 0; i < count; i++) {
        struct prb_variable variable = {.name = code->variables[i],
                                        .arg = code->variable_kinds[i] & PRB_VARIABLE_ARG};
        if (code->variable_kinds[i] & PRB_VARIABLE_HIDDEN)
            continue;
        if (!untag(&py->layout, words[i], &variable))
            continue;
        bool shared = code->variable_kinds[i] & (PRB_VARIABLE_CELL | PRB_VARIABLE_FREE);
        if (shared && !open_cell(objects, &variable))
            continue;
        if (!each(context, &variable))
            break;
    }
    return true;
}

prb_addr prb_locals_first(struct prb_objects *objects, const struct prb_raw_frame *frame)
{
    const struct prb_layout *layout = &prb_objects_py(objects)->layout;
    struct prb_variable variable = {0};
    uint64_t word;
    if (!prb_objects_words(objects, frame->frame + (prb_addr)PRB_OFF(layout, frame, localsplus),
                           &word, 1) ||
        !untag(layout, word, &variable) || variable.is_number || !open_cell(objects, &variable))
        return 0;
    return variable.object;
}

struct mapping {
    struct prb_objects *objects;
    prb_variable_fn *each;
    void *context;
    size_t count;
};

static bool each_item(void *context, prb_addr key, prb_addr value)
{
    struct mapping *mapping = context;
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    if (!prb_object_str(mapping->objects, key, 256, &name, NULL) || !name.data ||
        strncmp(name.data, "__", 2) == 0)
        return true;
    struct prb_variable variable = {.name = name.data, .object = value};
    return mapping->each(mapping->context, &variable) && ++mapping->count < PRB_LOCALS_MAX;
}

bool prb_locals_each(struct prb_objects *objects, const struct prb_raw_frame *frame,
                     const struct prb_code_object *code, prb_variable_fn *each, void *context,
                     struct prb_error *err)
{
    enum { OPTIMIZED = 1 }; /* CO_OPTIMIZED: fast locals; without it names live in a mapping */
    struct prb_py *py = prb_objects_py(objects);
    uint64_t names = 0;
    if (!each_fast(objects, frame, code, each, context, err))
        return false;
    if (code->flags & OPTIMIZED || !PRB_FIELD_OF(py, frame->frame, frame, locals, &names, NULL) ||
        !names || prb_object_kind(objects, names, NULL) != PRB_OBJ_DICT)
        return true;
    struct mapping mapping = {objects, each, context, 0};
    return prb_dict_each(objects, names, each_item, &mapping, err);
}
