/*
 * What str() gives for an exception, without calling it: its argument as a string, or what the C
 * types of CPython print instead.  A class written in Python may print something else; its
 * arguments are printed.  Source: OSError_str, KeyError_str, SyntaxError_str,
 * BaseExceptionGroup_str, BaseException_str in Objects/exceptions.c; their attributes are members
 * that the types publish (tp_members).
 */
#include <string.h>

#include "base/file.h"
#include "inspect/message.h"
#include "py/object/reader.h"
#include "repr/repr.h"

#define CHARACTERS 4096
#define BASES_MAX 64

struct message {
    struct prb_objects *objects;
    prb_addr exception;
    struct prb_buf *out;
};

static void add_repr(const struct message *message, prb_addr value)
{
    const struct prb_repr_limits limits = {.characters = CHARACTERS};
    (void)prb_object_repr(message->objects, value, &limits, message->out, NULL);
}

static void add_str(const struct message *message, prb_addr value)
{
    if (!prb_object_str(message->objects, value, CHARACTERS, message->out, NULL))
        add_repr(message, value);
}

/* 0: missing, or None. */
static prb_addr member(const struct message *message, const char *name)
{
    prb_addr value;
    return prb_attribute_get(message->objects, message->exception, name, &value, NULL) && value &&
                   prb_object_kind(message->objects, value, NULL) != PRB_OBJ_NONE
               ? value
               : 0;
}

/* ---- types with their own str(); false: it is BaseException's ---- */

static bool add_os_error(const struct message *message)
{
    prb_addr number = member(message, "errno"), text = member(message, "strerror");
    prb_addr file = member(message, "filename"), other = member(message, "filename2");
    if (!number || !text)
        return false;
    prb_buf_adds(message->out, "[Errno ");
    add_str(message, number);
    prb_buf_adds(message->out, "] ");
    add_str(message, text);
    if (file) {
        prb_buf_adds(message->out, ": ");
        add_repr(message, file);
    }
    if (file && other) {
        prb_buf_adds(message->out, " -> ");
        add_repr(message, other);
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

/* How many arguments there are, at most 2, and the first. */
static bool arguments(const struct message *message, prb_addr *args, size_t *count, prb_addr *first)
{
    struct few few = {0};
    uint64_t tuple;
    if (!PRB_GET(message->objects, message->exception, exception, args, &tuple) || !tuple ||
        !prb_sequence_each(message->objects, tuple, few_items, &few, NULL))
        return false;
    *args = tuple;
    *count = few.count;
    *first = few.first;
    return true;
}

static bool add_key_error(const struct message *message)
{
    prb_addr args, sole;
    size_t count;
    if (!arguments(message, &args, &count, &sole) || count != 1)
        return false;
    add_repr(message, sole);
    return true;
}

static bool add_syntax_error(const struct message *message)
{
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    prb_addr text = member(message, "msg"), file = member(message, "filename");
    prb_addr line = member(message, "lineno");
    if (text)
        add_str(message, text);
    else
        prb_buf_adds(message->out, "None");
    if (file && !prb_object_str(message->objects, file, CHARACTERS, &path, NULL))
        file = 0;
    if (line && prb_object_kind(message->objects, line, NULL) != PRB_OBJ_INT)
        line = 0;
    if (file)
        prb_buf_addf(message->out, " (%s", path.data ? prb_base_name(path.data) : "");
    if (line) {
        prb_buf_adds(message->out, file ? ", line " : " (line ");
        add_str(message, line);
    }
    if (file || line)
        prb_buf_adds(message->out, ")");
    return true;
}

static bool add_group(const struct message *message)
{
    prb_addr text = member(message, "message"), inner = member(message, "exceptions");
    size_t count = 0;
    if (!text || !inner || !prb_sequence_each(message->objects, inner, count_item, &count, NULL))
        return false;
    add_str(message, text);
    prb_buf_addf(message->out, " (%zu sub-exception%s)", count, count == 1 ? "" : "s");
    return true;
}

static const struct {
    const char *type;
    bool (*add)(const struct message *message);
} kinds[] = {
    {"OSError", add_os_error},
    {"KeyError", add_key_error},
    {"SyntaxError", add_syntax_error},
    {"BaseExceptionGroup", add_group},
};

static bool add_by_type(const struct message *message)
{
    struct prb_object_type *type = prb_type_of(message->objects, message->exception, NULL);
    for (int i = 0; type && i < BASES_MAX; i++) {
        for (size_t k = 0; !type->python && k < sizeof kinds / sizeof *kinds; k++)
            if (strcmp(type->name, kinds[k].type) == 0)
                return kinds[k].add(message);
        type = type->base ? prb_type_at(message->objects, type->base, NULL) : NULL;
    }
    return false;
}

void prb_exception_message(struct prb_objects *objects, prb_addr exception, struct prb_buf *out)
{
    const struct message message = {.objects = objects, .exception = exception, .out = out};
    prb_addr args, sole;
    size_t count;
    if (add_by_type(&message) || !arguments(&message, &args, &count, &sole) || !count)
        return;
    if (count == 1)
        add_str(&message, sole);
    else
        add_repr(&message, args);
}
