/* Local variables of the calling thread's frames, by the layout of the interpreter's version. */
#include <string.h>

#include "inject/probe/watch/watch.h"

#define LAYOUT (&prb_watch_facts.layout)
#define NAMES_MAX 4096u

static uint64_t word_at(const char *at, int32_t offset)
{
    uint64_t word;
    memcpy(&word, at + offset, sizeof word);
    return word;
}

static const char *pointer_at(const char *at, int32_t offset)
{
    return (const char *)(uintptr_t)word_at(at, offset);
}

/* A word of a frame may have tags (3.14+).  NULL and no number: nothing. */
static const char *untag(uint64_t word, bool *is_number, int64_t *number_out)
{
    if (!PRB_IS(LAYOUT, reference, TAGGED))
        return (const char *)(uintptr_t)word;
    uint64_t mask = (uint64_t)PRB_NUM(LAYOUT, reference_mask), tag = word & mask;
    if (tag == (uint64_t)PRB_NUM(LAYOUT, reference_integer)) {
        *is_number = true;
        *number_out = (int64_t)word >> 2;
        return NULL;
    }
    if (PRB_NUM(LAYOUT, reference_invalid) != PRB_NONE &&
        tag == (uint64_t)PRB_NUM(LAYOUT, reference_invalid))
        return NULL;
    return (const char *)(uintptr_t)(word & ~mask);
}

/* ---- names ---- */

static int32_t int_at(const char *at, int32_t offset)
{
    int32_t value;
    memcpy(&value, at + offset, sizeof value);
    return value;
}

/* The names of variables are interned: the very string is among them, or none is. */
static int place_in(const char *tuple, const char *name)
{
    if (!tuple)
        return -1;
    uint64_t size = word_at(tuple, PRB_OFF(LAYOUT, tuple, size));
    for (uint64_t i = 0; i < size && i < NAMES_MAX; i++)
        if (pointer_at(tuple, PRB_OFF(LAYOUT, tuple, items) + (int32_t)(i * 8)) == name)
            return (int)i;
    return -1;
}

int prb_watch_local_index(const char *code, const char *name)
{
    if (PRB_IS(LAYOUT, variables, LOCALSPLUS))
        return place_in(pointer_at(code, PRB_OFF(LAYOUT, code, localsplusnames)), name);
    /* An argument that closures share stands among the names, too, but lives in its cell. */
    const char *cells = pointer_at(code, PRB_OFF(LAYOUT, code, cellvars)),
               *frees = pointer_at(code, PRB_OFF(LAYOUT, code, freevars));
    int locals = int_at(code, PRB_OFF(LAYOUT, code, nlocals));
    int cell_count = cells ? (int)word_at(cells, PRB_OFF(LAYOUT, tuple, size)) : 0;
    int at = place_in(cells, name);
    if (at >= 0)
        return locals + at;
    at = place_in(frees, name);
    return at >= 0 ? locals + cell_count + at
                   : place_in(pointer_at(code, PRB_OFF(LAYOUT, code, varnames)), name);
}

bool prb_watch_has_names(const char *code)
{
    enum { OPTIMIZED = 1 }; /* CO_OPTIMIZED: fast locals; without it names live in a mapping */
    return !(int_at(code, PRB_OFF(LAYOUT, code, flags)) & OPTIMIZED);
}

/* ---- locals ---- */

/* Of the body of a module or a class. */
static const char *in_mapping(const struct prb_watch_reader *reader, const char *frame,
                              const char *name)
{
    const char *names = pointer_at(frame, PRB_OFF(LAYOUT, frame, locals));
    if (!names)
        names = pointer_at(frame, PRB_OFF(LAYOUT, frame, globals));
    return names ? prb_watch_dict_get(reader, names, name) : NULL;
}

const char *prb_watch_local(const struct prb_watch_reader *reader, const char *frame,
                            const char *code, int index, const char *name, bool *is_number,
                            int64_t *number_out)
{
    *is_number = false;
    if (index < 0)
        return prb_watch_has_names(code) ? in_mapping(reader, frame, name) : NULL;
    int32_t at = PRB_OFF(LAYOUT, frame, localsplus) + index * (int32_t)sizeof(void *);
    const char *value = untag(word_at(frame, at), is_number, number_out);
    if (value && pointer_at(value, PRB_OFF(LAYOUT, object, type)) == prb_watch_facts.cell)
        value = pointer_at(value, PRB_OFF(LAYOUT, cell, ref));
    return value;
}
