/*
 * What str() gives for an exception, without calling it: its argument as text, and what the C types
 * of CPython say instead.  A class written in Python may say something else; its arguments are
 * told. Source: OSError_str, KeyError_str, SyntaxError_str, BaseExceptionGroup_str,
 * BaseException_str in Objects/exceptions.c; their attributes are members that the types publish
 * (tp_members).
 */
#include <string.h>

#include "base/file.h"
#include "inspect/message.h"
#include "py/object/reader.h"
#include "repr/repr.h"

#define CHARACTERS 4096
#define BASES_MAX 64

struct told {
    struct prb_objects *objects;
    prb_addr exception;
    struct prb_buf *out;
};

static void add_repr(const struct told *told, prb_addr value)
{
    const struct prb_repr_limits limits = {.characters = CHARACTERS};
    (void)prb_object_repr(told->objects, value, &limits, told->out, NULL);
}

static void add_str(const struct told *told, prb_addr value)
{
    if (!prb_object_str(told->objects, value, CHARACTERS, told->out, NULL))
        add_repr(told, value);
}

/* 0: there is none, or it is None. */
static prb_addr member(const struct told *told, const char *name)
{
    prb_addr value;
    return prb_attribute_get(told->objects, told->exception, name, &value, NULL) && value &&
                   prb_object_kind(told->objects, value, NULL) != PRB_OBJ_NONE
               ? value
               : 0;
}

/* ---- the types that have a str() of their own; false: it is that of any exception ---- */

static bool tell_os_error(const struct told *told)
{
    prb_addr number = member(told, "errno"), text = member(told, "strerror");
    prb_addr file = member(told, "filename"), other = member(told, "filename2");
    if (!number || !text)
        return false;
    prb_buf_adds(told->out, "[Errno ");
    add_str(told, number);
    prb_buf_adds(told->out, "] ");
    add_str(told, text);
    if (file) {
        prb_buf_adds(told->out, ": ");
        add_repr(told, file);
    }
    if (file && other) {
        prb_buf_adds(told->out, " -> ");
        add_repr(told, other);
    }
    return true;
}

static bool count_item(void *context, prb_addr key, prb_addr value)
{
    size_t *count = context;
    (void)key, (void)value;
    (*count)++;
    return true;
}

struct few {
    size_t count; /* 2: two or more */
    prb_addr first;
};

static bool few_items(void *context, prb_addr key, prb_addr value)
{
    struct few *few = context;
    (void)key;
    if (!few->count)
        few->first = value;
    return ++few->count < 2;
}

/* The arguments: how many, up to two, and the first. */
static bool arguments(const struct told *told, prb_addr *args, size_t *count, prb_addr *first)
{
    struct few few = {0};
    uint64_t tuple;
    if (!PRB_GET(told->objects, told->exception, exception, args, &tuple) || !tuple ||
        !prb_sequence_each(told->objects, tuple, few_items, &few, NULL))
        return false;
    *args = tuple;
    *count = few.count;
    *first = few.first;
    return true;
}

static bool tell_key_error(const struct told *told)
{
    prb_addr args, sole;
    size_t count;
    if (!arguments(told, &args, &count, &sole) || count != 1)
        return false;
    add_repr(told, sole);
    return true;
}

static bool tell_syntax_error(const struct told *told)
{
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    prb_addr text = member(told, "msg"), file = member(told, "filename");
    prb_addr line = member(told, "lineno");
    if (text)
        add_str(told, text);
    else
        prb_buf_adds(told->out, "None");
    if (file && !prb_object_str(told->objects, file, CHARACTERS, &path, NULL))
        file = 0;
    if (line && prb_object_kind(told->objects, line, NULL) != PRB_OBJ_INT)
        line = 0;
    if (file)
        prb_buf_addf(told->out, " (%s", path.data ? prb_base_name(path.data) : "");
    if (line) {
        prb_buf_adds(told->out, file ? ", line " : " (line ");
        add_str(told, line);
    }
    if (file || line)
        prb_buf_adds(told->out, ")");
    return true;
}

static bool tell_group(const struct told *told)
{
    prb_addr text = member(told, "message"), inner = member(told, "exceptions");
    size_t count = 0;
    if (!text || !inner || !prb_sequence_each(told->objects, inner, count_item, &count, NULL))
        return false;
    add_str(told, text);
    prb_buf_addf(told->out, " (%zu sub-exception%s)", count, count == 1 ? "" : "s");
    return true;
}

static const struct {
    const char *type;
    bool (*tell)(const struct told *told);
} kinds[] = {
    {"OSError", tell_os_error},
    {"KeyError", tell_key_error},
    {"SyntaxError", tell_syntax_error},
    {"BaseExceptionGroup", tell_group},
};

static bool tell_by_type(const struct told *told)
{
    struct prb_object_type *type = prb_type_of(told->objects, told->exception, NULL);
    for (int i = 0; type && i < BASES_MAX; i++) {
        for (size_t k = 0; !type->python && k < sizeof kinds / sizeof *kinds; k++)
            if (strcmp(type->name, kinds[k].type) == 0)
                return kinds[k].tell(told);
        type = type->base ? prb_type_at(told->objects, type->base, NULL) : NULL;
    }
    return false;
}

void prb_exception_message(struct prb_objects *objects, prb_addr exception, struct prb_buf *out)
{
    const struct told told = {.objects = objects, .exception = exception, .out = out};
    prb_addr args, sole;
    size_t count;
    if (tell_by_type(&told) || !arguments(&told, &args, &count, &sole) || !count)
        return;
    if (count == 1)
        add_str(&told, sole);
    else
        add_repr(&told, args);
}
