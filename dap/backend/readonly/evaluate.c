/*
 * evaluate without running code: a name of the frame, then attributes and items of its value
 * ("batch.shape", "state['lr'][0]").  Every other expression is refused.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "dap/backend/readonly/readonly.h"

#define STEP_MAX 256 /* bytes of one attribute or key */

/* The value of an expression so far. */
struct place {
    struct prb_part part;
    struct prb_parts *parts; /* owned; the strings of part belong to it */
};

static void place_deinit(struct place *place) { prb_parts_free(place->parts); }
PRB_DEFINE_AUTO(place, struct place, place_deinit)

static bool refuse(struct prb_error *err, const char *expression)
{
    return prb_fail(err, PRB_UNSUPPORTED,
                    "cannot evaluate %.100s: no code can run here, only names, attributes and "
                    "items can be read",
                    expression);
}

static bool absent(struct prb_error *err, const char *what)
{
    return prb_fail(err, PRB_NOT_FOUND, "there is no %.120s", what);
}

/* ---- steps ---- */

static size_t identifier(const char *text)
{
    size_t len = 0;
    if (isdigit((unsigned char)*text))
        return 0;
    while (text[len] == '_' || isalnum((unsigned char)text[len]) || (unsigned char)text[len] > 127)
        len++;
    return len;
}

/* The end of "[...]", with regard to quotes; 0: it has no end. */
static size_t subscript(const char *text)
{
    char quote = 0;
    for (size_t i = 1; text[i]; i++) {
        if (quote && text[i] == '\\' && text[i + 1])
            i++;
        else if (quote)
            quote = text[i] == quote ? 0 : quote;
        else if (text[i] == '\'' || text[i] == '"')
            quote = text[i];
        else if (text[i] == ']')
            return i + 1;
    }
    return 0;
}

/* The step that text begins with, as prb_part.access writes it.  Returns its length in text; 0: it
 * is not a step. */
static size_t next_step(const char *text, char out[STEP_MAX])
{
    size_t len = *text == '.' ? identifier(text + 1) : *text == '[' ? subscript(text) : 0;
    len += len && *text == '.';
    if (!len || len >= STEP_MAX)
        return 0;
    memcpy(out, text, len);
    out[len] = 0;
    bool plain = len > 3 && out[1] == '"' && out[len - 2] == '"' && !strpbrk(out, "'\\");
    if (plain)
        out[1] = out[len - 2] = '\'';
    return len;
}

/* The part with that access among the elements from start on, or the attributes. */
static bool find_part(struct prb_dap_readonly *readonly, prb_addr object, const char *step,
                      struct prb_parts_options options, struct place *out, struct prb_error *err)
{
    struct prb_parts *parts = prb_parts_take(readonly->target, object, &options, err);
    for (size_t i = 0; parts && i < parts->count; i++)
        if (parts->items[i].access && strcmp(parts->items[i].access, step) == 0) {
            prb_parts_free(out->parts);
            *out = (struct place){parts->items[i], parts};
            return true;
        }
    if (parts)
        absent(err, step);
    prb_parts_free(parts);
    return false;
}

static bool take_step(struct prb_dap_readonly *readonly, const char *step, size_t limit,
                      struct place *place, struct prb_error *err)
{
    char *end, text[STEP_MAX + 8];
    prb_addr object = place->part.addr;
    long long index = strtoll(step + 1, &end, 10);
    bool number = *step == '[' && end > step + 1 && *end == ']';
    struct prb_parts_options options = {
        .named = *step == '.', .indexed = *step == '[', .repr_limit = limit};
    if (!object)
        return absent(err, step);
    snprintf(text, sizeof text, "%s", step);
    if (number && index < 0 && (uint64_t)-index <= place->part.indexed) {
        index += (long long)place->part.indexed;
        snprintf(text, sizeof text, "[%lld]", index);
    }
    struct prb_parts_options one = options;
    one.start = (uint64_t)index;
    one.count = 1;
    if (number && index >= 0 && find_part(readonly, object, text, one, place, NULL))
        return true;
    return find_part(readonly, object, step, options, place,
                     err); /* a dict may have that as its key */
}

/* ---- its first name ---- */

static bool of_locals(struct prb_dap_readonly *readonly, const struct prb_frame *frame,
                      const char *name, size_t limit, struct place *out)
{
    struct prb_parts_options options = {.repr_limit = limit};
    for (size_t i = 0; i < frame->local_count; i++) {
        const struct prb_local *local = &frame->locals[i];
        if (strcmp(local->name, name) != 0)
            continue;
        out->part = (struct prb_part){.repr = local->repr, .type = local->type};
        out->parts =
            local->addr ? prb_parts_take(readonly->target, local->addr, &options, NULL) : NULL;
        if (out->parts)
            out->part = out->parts->whole;
        return true;
    }
    return false;
}

static bool find_name(struct prb_dap_readonly *readonly, const struct prb_frame *frame,
                      const char *name, size_t limit, struct place *out, struct prb_error *err)
{
    char key[STEP_MAX + 8];
    struct prb_parts_options options = {.indexed = true, .repr_limit = limit};
    if (of_locals(readonly, frame, name, limit, out))
        return true;
    snprintf(key, sizeof key, "['%s']", name);
    if (frame->globals && find_part(readonly, frame->globals, key, options, out, NULL))
        return true;
    return prb_fail(err, PRB_NOT_FOUND, "name '%.120s' is not defined", name);
}

static bool resolve(struct prb_dap_readonly *readonly, const struct prb_frame *frame,
                    const char *expression, size_t limit, struct place *out, struct prb_error *err)
{
    char step[STEP_MAX];
    size_t first = identifier(expression), len = 1;
    for (const char *at = expression + first; *at && len; at += len)
        len = next_step(at, step);
    if (!first || first >= STEP_MAX || !len)
        return refuse(err, expression);
    memcpy(step, expression, first);
    step[first] = 0;
    if (!find_name(readonly, frame, step, limit, out, err))
        return false;
    for (const char *at = expression + first; *at; at += len) {
        len = next_step(at, step);
        if (!take_step(readonly, step, limit, out, err))
            return false;
    }
    return true;
}

json_t *prb_dap_readonly_evaluate(struct prb_dap_readonly *readonly, const json_t *arguments,
                                  struct prb_error *err)
{
    const char *given = prb_dap_readonly_string(arguments, "expression");
    const char *context = prb_dap_readonly_string(arguments, "context");
    bool hex = json_is_true(json_object_get(json_object_get(arguments, "format"), "hex"));
    bool copy = context && strcmp(context, "clipboard") == 0;
    const struct prb_dap_readonly_handle *handle =
        prb_dap_readonly_find(readonly, prb_dap_readonly_integer(arguments, "frameId", 0), err);
    PRB_AUTO(place) struct place place = {0};
    if (!handle || !given)
        return handle ? PRB_NULL(prb_fail(err, PRB_USAGE, "evaluate needs an expression")) : NULL;
    if (handle->kind != PRB_DAP_READONLY_FRAME)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "evaluate needs a frame"));
    const struct prb_frame *frame = &readonly->view->threads[handle->thread].frames[handle->frame];
    PRB_AUTO_FREE char *expression = strdup(given + strspn(given, " \t\n"));
    if (!expression)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    for (size_t n = strlen(expression); n && isspace((unsigned char)expression[n - 1]); n--)
        expression[n - 1] = 0;
    if (!resolve(readonly, frame, expression,
                 copy ? PRB_DAP_READONLY_CLIPBOARD : PRB_DAP_READONLY_VALUE, &place, err))
        return NULL;
    json_t *out = json_object();
    prb_dap_readonly_describe(readonly, out, &place.part, "result", expression, hex);
    json_object_del(out, "evaluateName"); /* of variables only */
    return out;
}
