/*
 * Scopes and variables: locals as the view has them; what the user unfolds is read at that moment.
 * Nothing can be changed, and every row says so.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dap/backend/readonly/readonly.h"

/* ---- one variable ---- */

/* An int as 0x…; NULL: it is not an int, or too long. */
static char *as_hex(const struct prb_part *part)
{
    char *end, *out = NULL;
    if (!part->type || strcmp(part->type, "int") != 0)
        return NULL;
    errno = 0;
    long long value = strtoll(part->repr, &end, 10);
    if (errno || *end)
        return NULL;
    unsigned long long size =
        value < 0 ? 0ull - (unsigned long long)value : (unsigned long long)value;
    return asprintf(&out, "%s0x%llx", value < 0 ? "-" : "", size) < 0 ? NULL : out;
}

void prb_dap_readonly_describe(struct prb_dap_readonly *readonly, json_t *out,
                               const struct prb_part *part, const char *value_key,
                               const char *expression, bool hex)
{
    PRB_AUTO_FREE char *number = hex && part->repr ? as_hex(part) : NULL;
    json_int_t reference = 0;
    if (part->addr && (part->indexed || part->named))
        reference = prb_dap_readonly_handle(
            readonly,
            (struct prb_dap_readonly_handle){.kind = PRB_DAP_READONLY_OBJECT,
                                             .object = part->addr,
                                             .expression = expression ? strdup(expression) : NULL});
    json_object_set_new(out, value_key,
                        prb_dap_text(number       ? number
                                     : part->repr ? part->repr
                                                  : "<unreadable>"));
    json_object_set_new(out, "variablesReference", json_integer(reference));
    if (part->type)
        json_object_set_new(out, "type", prb_dap_text(part->type));
    if (reference && part->indexed)
        json_object_set_new(out, "indexedVariables", json_integer((json_int_t)part->indexed));
    if (reference && part->named)
        json_object_set_new(out, "namedVariables", json_integer((json_int_t)part->named));
    if (expression)
        json_object_set_new(out, "evaluateName", prb_dap_text(expression));
    json_object_set_new(out, "presentationHint", json_pack("{s:[s]}", "attributes", "readOnly"));
}

static void append(struct prb_dap_readonly *readonly, json_t *list, const char *name,
                   const struct prb_part *part, const char *expression, bool hex)
{
    json_t *out = json_object();
    if (!out)
        return;
    json_object_set_new(out, "name", prb_dap_text(name));
    prb_dap_readonly_describe(readonly, out, part, "value", expression, hex);
    json_array_append_new(list, out);
}

/* ---- scopes ---- */

json_t *prb_dap_readonly_scopes(struct prb_dap_readonly *readonly, const json_t *arguments,
                                struct prb_error *err)
{
    json_int_t id = prb_dap_readonly_integer(arguments, "frameId", 0);
    const struct prb_dap_readonly_handle *found = prb_dap_readonly_find(readonly, id, err);
    if (!found)
        return NULL;
    struct prb_dap_readonly_handle handle = *found; /* the table may grow below */
    if (handle.kind != PRB_DAP_READONLY_FRAME)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "%lld is not a frame", (long long)id));
    const struct prb_frame *frame = &readonly->view->threads[handle.thread].frames[handle.frame];
    json_t *list = json_array();
    if (frame->kind != PRB_FRAME_PYTHON)
        return json_pack("{s:o}", "scopes", list);
    handle.kind = PRB_DAP_READONLY_LOCALS;
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:I, s:I, s:b}", "name", "Locals", "presentationHint", "locals",
                        "variablesReference", prb_dap_readonly_handle(readonly, handle),
                        "namedVariables", (json_int_t)frame->local_count, "expensive", 0));
    handle.kind = PRB_DAP_READONLY_GLOBALS;
    handle.object = frame->globals;
    if (handle.object)
        json_array_append_new(list,
                              json_pack("{s:s, s:I, s:b}", "name", "Globals", "variablesReference",
                                        prb_dap_readonly_handle(readonly, handle), "expensive", 1));
    return json_pack("{s:o}", "scopes", list);
}

/* ---- variables ---- */

/* The text is the view's; counts are read now. */
static json_t *locals(struct prb_dap_readonly *readonly,
                      const struct prb_dap_readonly_handle *handle, bool hex)
{
    const struct prb_frame *frame = &readonly->view->threads[handle->thread].frames[handle->frame];
    json_t *list = json_array();
    for (size_t i = 0; i < frame->local_count; i++) {
        const struct prb_local *local = &frame->locals[i];
        struct prb_parts_options options = {.repr_limit = PRB_DAP_READONLY_VALUE};
        PRB_AUTO(prb_parts)
        struct prb_parts *parts =
            local->addr ? prb_parts_take(readonly->target, local->addr, &options, NULL) : NULL;
        struct prb_part part = {.repr = local->repr, .type = local->type};
        /* In a live target another object may be at that address by now. */
        bool same = parts && parts->whole.type && local->type &&
                    strcmp(parts->whole.type, local->type) == 0;
        if (same) {
            part = parts->whole;
            if (readonly->live && strncmp(local->repr, "torch.", 6) != 0 &&
                strncmp(local->repr, "numpy.", 6) != 0)
                part.repr = local->repr;
        }
        append(readonly, list, local->name, &part, local->name, hex);
    }
    return list;
}

/* "'name'" as the name; NULL: one of the interpreter's own, or not a name. */
static char *global_name(const char *key)
{
    size_t len = strlen(key);
    if (len < 3 || key[0] != '\'' || key[len - 1] != '\'')
        return NULL;
    char *name = strndup(key + 1, len - 2);
    if (name && strncmp(name, "__", 2) == 0) {
        free(name);
        return NULL;
    }
    return name;
}

static json_t *globals(struct prb_dap_readonly *readonly, prb_addr dict, bool hex,
                       struct prb_error *err)
{
    struct prb_parts_options options = {.indexed = true, .repr_limit = PRB_DAP_READONLY_VALUE};
    PRB_AUTO(prb_parts)
    struct prb_parts *parts = prb_parts_take(readonly->target, dict, &options, err);
    if (!parts)
        return NULL;
    json_t *list = json_array();
    for (size_t i = 0; i < parts->count; i++) {
        PRB_AUTO_FREE char *name = global_name(parts->items[i].name);
        if (name)
            append(readonly, list, name, &parts->items[i], name, hex);
    }
    return list;
}

static json_t *object_parts(struct prb_dap_readonly *readonly,
                            const struct prb_dap_readonly_handle *handle, const json_t *arguments,
                            bool hex, struct prb_error *err)
{
    const char *filter = prb_dap_readonly_string(arguments, "filter");
    json_int_t start = prb_dap_readonly_integer(arguments, "start", 0);
    json_int_t count = prb_dap_readonly_integer(arguments, "count", 0);
    struct prb_parts_options options = {
        .indexed = !filter || strcmp(filter, "indexed") == 0,
        .named = !filter || strcmp(filter, "named") == 0,
        .start = start < 0 ? 0 : (uint64_t)start,
        .count = count < 0 ? 0 : (uint64_t)count,
        .repr_limit = PRB_DAP_READONLY_VALUE,
    };
    PRB_AUTO(prb_parts)
    struct prb_parts *parts = prb_parts_take(readonly->target, handle->object, &options, err);
    if (!parts)
        return NULL;
    json_t *list = json_array();
    for (size_t i = 0; i < parts->count; i++) {
        const struct prb_part *part = &parts->items[i];
        PRB_AUTO_FREE char *expression = NULL;
        if (handle->expression && part->access &&
            asprintf(&expression, "%s%s", handle->expression, part->access) < 0)
            expression = NULL;
        append(readonly, list, part->name, part, expression, hex);
    }
    return list;
}

json_t *prb_dap_readonly_variables(struct prb_dap_readonly *readonly, const json_t *arguments,
                                   struct prb_error *err)
{
    json_int_t number = prb_dap_readonly_integer(arguments, "variablesReference", 0);
    const struct prb_dap_readonly_handle *found = prb_dap_readonly_find(readonly, number, err);
    bool hex = json_is_true(json_object_get(json_object_get(arguments, "format"), "hex"));
    if (!found)
        return NULL;
    struct prb_dap_readonly_handle handle = *found; /* the table may grow meanwhile */
    json_t *list = NULL;
    switch (handle.kind) {
    case PRB_DAP_READONLY_FRAME:
        return PRB_NULL(
            prb_fail(err, PRB_NOT_FOUND, "%lld is a frame, not a variable", (long long)number));
    case PRB_DAP_READONLY_LOCALS:
        list = locals(readonly, &handle, hex);
        break;
    case PRB_DAP_READONLY_GLOBALS:
        list = globals(readonly, handle.object, hex, err);
        break;
    case PRB_DAP_READONLY_OBJECT:
        list = object_parts(readonly, &handle, arguments, hex, err);
        break;
    }
    return list ? json_pack("{s:o}", "variables", list) : NULL;
}
