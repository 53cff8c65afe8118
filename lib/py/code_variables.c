/*
 * The variables of a code object: names and kinds, in the order of a frame's localsplus.
 * Sources: Include/cpython/code.h, Include/internal/pycore_code.h.
 */
#include "py/code_read.h"

#define VARIABLES_MAX 65536

/* Bits of co_localspluskinds, the same in 3.11–3.15: Include/internal/pycore_code.h. */
enum { KIND_HIDDEN = 0x10, KIND_LOCAL = 0x20, KIND_CELL = 0x40, KIND_FREE = 0x80 };

struct variables {
    const struct prb_code_reader *reader;
    struct prb_code_object *code;
    size_t room; /* names that were counted; the target may have more by now */
    uint8_t kind;
};

static bool add_variable(void *context, prb_addr key, prb_addr name)
{
    (void)key;
    struct variables *v = context;
    if (v->code->variable_count == v->room)
        return false;
    const char *text = prb_code_text(v->reader, name, NULL);
    v->code->variables[v->code->variable_count] = text ? text : "?";
    v->code->variable_kinds[v->code->variable_count++] = v->kind;
    return true;
}

static bool tuple_size(struct prb_py *py, prb_addr tuple, uint64_t *out, struct prb_error *err)
{
    if (!PRB_FIELD_OF(py, tuple, tuple, size, out, err))
        return false;
    if (*out > VARIABLES_MAX)
        return prb_fail(err, PRB_CORRUPT, "%llu variable names", (unsigned long long)*out);
    return true;
}

static bool room_for(const struct prb_code_reader *reader, struct prb_code_object *code,
                     size_t count, struct prb_error *err)
{
    code->variables = prb_arena_alloc(reader->arena, (count + 1) * sizeof *code->variables);
    code->variable_kinds = prb_arena_alloc(reader->arena, count + 1);
    code->variable_count = 0;
    return code->variables && code->variable_kinds ? true : prb_nomem(err);
}

static void mark_arguments(struct prb_code_object *code)
{
    enum { VARARGS = 4, VARKEYWORDS = 8 }; /* co_flags, Include/cpython/code.h */
    size_t args = (size_t)code->argcount + (size_t)code->kwonlyargcount +
                  !!(code->flags & VARARGS) + !!(code->flags & VARKEYWORDS);
    for (size_t i = 0; i < args && i < code->variable_count; i++)
        if (code->variable_kinds[i] & PRB_VARIABLE_LOCAL)
            code->variable_kinds[i] |= PRB_VARIABLE_ARG;
}

/* 3.11+: one tuple of names, one bytes object of kinds. */
static bool read_localsplus(const struct prb_code_reader *reader, struct prb_code_object *code,
                            struct prb_error *err)
{
    struct prb_py *py = reader->py;
    uint64_t names, kinds, count, kinds_len;
    if (!PRB_FIELD_OF(py, code->addr, code, localsplusnames, &names, err) ||
        !PRB_FIELD_OF(py, code->addr, code, localspluskinds, &kinds, err) ||
        !tuple_size(py, names, &count, err) ||
        !PRB_FIELD_OF(py, kinds, bytes, size, &kinds_len, err))
        return false;
    if (kinds_len != count)
        return prb_fail(err, PRB_CORRUPT, "%llu variables of %llu kinds", (unsigned long long)count,
                        (unsigned long long)kinds_len);
    struct variables v = {reader, code, count, 0};
    PRB_AUTO_FREE uint8_t *raw = malloc(count + 1);
    if (!raw)
        return prb_nomem(err);
    if (!room_for(reader, code, count, err) ||
        !prb_mem_read(py->mem, kinds + (prb_addr)PRB_OFF(&py->layout, bytes, data), raw, count,
                      err) ||
        !prb_sequence_each(reader->objects, names, add_variable, &v, err))
        return false;
    for (size_t i = 0; i < code->variable_count; i++)
        code->variable_kinds[i] = (uint8_t)((raw[i] & KIND_LOCAL ? PRB_VARIABLE_LOCAL : 0) |
                                            (raw[i] & KIND_CELL ? PRB_VARIABLE_CELL : 0) |
                                            (raw[i] & KIND_FREE ? PRB_VARIABLE_FREE : 0) |
                                            (raw[i] & KIND_HIDDEN ? PRB_VARIABLE_HIDDEN : 0));
    return true;
}

/* Up to 3.10: three tuples, in the order of f_localsplus. */
static bool read_name_tuples(const struct prb_code_reader *reader, struct prb_code_object *code,
                             struct prb_error *err)
{
    static const struct {
        enum prb_field field;
        uint8_t kind;
    } parts[] = {
        {PRB_F_code_varnames, PRB_VARIABLE_LOCAL},
        {PRB_F_code_cellvars, PRB_VARIABLE_CELL},
        {PRB_F_code_freevars, PRB_VARIABLE_FREE},
    };
    struct prb_py *py = reader->py;
    uint64_t tuples[3], total = 0;
    for (size_t i = 0; i < 3; i++) {
        uint64_t count;
        if (!prb_py_field(py, code->addr, parts[i].field, &tuples[i], err) ||
            !tuple_size(py, tuples[i], &count, err))
            return false;
        total += count;
    }
    if (!room_for(reader, code, total, err))
        return false;
    for (size_t i = 0; i < 3; i++) {
        struct variables v = {reader, code, total, parts[i].kind};
        if (!prb_sequence_each(reader->objects, tuples[i], add_variable, &v, err))
            return false;
    }
    return true;
}

bool prb_code_read_variables(const struct prb_code_reader *reader, struct prb_code_object *code,
                             struct prb_error *err)
{
    bool ok = PRB_IS(&reader->py->layout, variables, LOCALSPLUS)
                  ? read_localsplus(reader, code, err)
                  : read_name_tuples(reader, code, err);
    if (!ok) {
        code->variable_count = 0;
        return prb_error_prefix(err, "variables of %s", code->name);
    }
    mark_arguments(code);
    return true;
}
