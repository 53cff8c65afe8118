/* stackTrace, scopes and stepInTargets: frames and what belongs to them. */
#include <string.h>

#include "dap/backend/frames.h"
#include "dap/client/columns.h"
#include "dap/client/sources.h"
#include "dap/requests/stack.h"

static json_t *frame_name(const json_t *frame, const json_t *format)
{
    const char *name = json_string_value(json_object_get(frame, "name"));
    const char *module = json_string_value(json_object_get(frame, "module"));
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (module && json_is_true(json_object_get(format, "module")))
        prb_buf_addf(&text, "%s.", module);
    prb_buf_adds(&text, name && *name ? name : "?");
    if (json_is_true(json_object_get(format, "line")))
        prb_buf_addf(&text, " : %lld",
                     (long long)json_integer_value(json_object_get(frame, "line")));
    return prb_buf_ok(&text) ? json_string(text.data) : NULL;
}

/* Copy a line and its column, under these names, as the client counts them. */
static void set_place(struct prb_dap_session *session, json_t *to, const json_t *from,
                      const char *line_key, const char *column_key)
{
    const json_t *line = json_object_get(from, line_key),
                 *column = json_object_get(from, column_key);
    if (json_is_integer(line))
        json_object_set_new(to, line_key,
                            json_integer(prb_dap_line_out(session, json_integer_value(line))));
    if (!json_is_integer(column))
        return;
    json_int_t units = prb_dap_column_of(session, json_string_value(json_object_get(from, "path")),
                                         json_integer_value(line), json_integer_value(column));
    json_object_set_new(to, column_key, json_integer(prb_dap_column_out(session, units)));
}

/* A frame of the back end as DAP's StackFrame. */
static json_t *frame_of(struct prb_dap_session *session, const json_t *from, const json_t *format)
{
    json_int_t id = json_integer_value(json_object_get(from, "id"));
    const char *path = json_string_value(json_object_get(from, "path"));
    const json_t *hint = json_object_get(from, "presentationHint"),
                 *module = json_object_get(from, "module");
    bool own = !json_is_false(json_object_get(from, "own"));
    json_int_t reference = json_integer_value(json_object_get(from, "sourceReference"));
    json_t *source = prb_dap_source_json(session, path, reference, own);
    json_t *frame = json_pack("{s:I, s:o, s:i, s:i, s:o*}", "id", id, "name",
                              frame_name(from, format), "line", 0, "column", 0, "source", source);
    set_place(session, frame, from, "line", "column");
    set_place(session, frame, from, "endLine", "endColumn");
    if (json_is_string(hint))
        json_object_set(frame, "presentationHint", (json_t *)hint);
    if (json_is_string(module))
        json_object_set(frame, "moduleId", (json_t *)module);
    if (id && id < PRB_DAP_NATIVE_ID &&
        session->backend->ops->has(session->backend, "disassemble")) {
        char address[40];
        snprintf(address, sizeof address, PRB_DAP_FRAME_ADDRESS "%lld", (long long)id);
        json_object_set_new(frame, "instructionPointerReference", json_string(address));
    }
    return frame;
}

static json_t *stack_of(struct prb_dap_session *session, const json_t *answer,
                        const json_t *arguments, json_int_t thread)
{
    const json_t *format = prb_dap_get(arguments, "format"),
                 *total = json_object_get(answer, "totalFrames"), *one;
    json_t *frames = json_array(), *body;
    size_t i;
    json_array_foreach(json_object_get(answer, "stackFrames"), i, one)
    {
        prb_dap_session_set_thread(session, PRB_DAP_FRAME,
                                   json_integer_value(json_object_get(one, "id")), (pid_t)thread);
        json_array_append_new(frames, frame_of(session, one, format));
    }
    body = json_pack("{s:o}", "stackFrames", frames);
    if (json_is_integer(total))
        json_object_set(body, "totalFrames", (json_t *)total);
    return body;
}

static json_t *ask_rows(struct prb_dap_session *session, json_int_t thread, json_int_t start,
                        json_int_t levels, struct prb_error *err)
{
    json_t *wanted =
        json_pack("{s:I, s:I, s:I}", "threadId", thread, "startFrame", start, "levels", levels);
    json_t *answer = prb_dap_ask(session, "stack", wanted, 0, err);
    json_decref(wanted);
    return answer;
}

/* The first frame of the user's program; the number of frames, if there is none. */
static json_int_t first_own(const json_t *rows)
{
    const json_t *one;
    size_t i;
    json_array_foreach(rows, i, one)
    {
        if (!json_is_false(json_object_get(one, "own")))
            break;
    }
    return (json_int_t)i;
}

/* A client that folds shows all frames before the program's first as one row.  For such a client
 * they do not count as levels, or it would show nothing else.  Other clients get no more frames
 * than they asked for, as the protocol demands, and so does a client that asks for the top frame
 * only. */
static json_t *page_of(struct prb_dap_session *session, json_int_t thread, json_int_t start,
                       json_int_t levels, struct prb_error *err)
{
    json_t *page = ask_rows(session, thread, start, levels, err);
    const json_t *rows = json_object_get(page, "stackFrames");
    json_int_t count = (json_int_t)json_array_size(rows);
    bool more = count == levels && count > 1 &&
                json_integer_value(json_object_get(page, "totalFrames")) > start + count;
    if (!more || !session->client.folds || !first_own(rows))
        return page;
    json_t *whole = ask_rows(session, thread, 0, 0, NULL);
    rows = json_object_get(whole, "stackFrames");
    json_int_t own = first_own(rows);
    if (own < start || own == (json_int_t)json_array_size(rows)) {
        json_decref(whole);
        return page;
    }
    json_decref(page);
    prb_dap_stack_page(whole, start, own - start + levels);
    return whole;
}

static bool handle_stack(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                         struct prb_error *err)
{
    json_int_t thread = 0, start = 0, levels = 0;
    if (!prb_dap_get_integer(arguments, "threadId", &thread, err) ||
        !prb_dap_get_integer(arguments, "startFrame", &start, err) ||
        !prb_dap_get_integer(arguments, "levels", &levels, err))
        return false;
    if (start < 0 || levels < 0)
        return prb_fail(err, PRB_USAGE, "startFrame and levels must be at least 0");
    json_t *answer = page_of(session, thread, start, levels, err);
    if (answer)
        *body_out = stack_of(session, answer, arguments, thread);
    json_decref(answer);
    return answer != NULL;
}

const struct prb_dap_request prb_dap_stack_trace = {
    .command = "stackTrace",
    .capabilities = "supportsDelayedStackTraceLoading supportsValueFormattingOptions",
    .method = "stack",
    .when = PRB_DAP_STOPPED | PRB_DAP_LOOKS,
    .handle = handle_stack,
};

static bool handle_scopes(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                          struct prb_error *err)
{
    json_int_t frame = 0;
    json_t *one;
    size_t i;
    if (!prb_dap_get_integer(arguments, "frameId", &frame, err))
        return false;
    pid_t thread = prb_dap_session_thread(session, PRB_DAP_FRAME, frame);
    if (frame >= PRB_DAP_NATIVE_ID && thread) {
        *body_out = json_pack("{s:[]}", "scopes");
        return true;
    }
    json_t *wanted = json_pack("{s:I}", "frameId", frame);
    json_t *answer = prb_dap_ask(session, "scopes", wanted, 0, err);
    json_decref(wanted);
    json_array_foreach(json_object_get(answer, "scopes"), i, one)
    {
        prb_dap_session_set_thread(session, PRB_DAP_VALUE,
                                   json_integer_value(json_object_get(one, "variablesReference")),
                                   thread);
        prb_dap_lines_map(session, one);
    }
    *body_out = answer;
    return answer != NULL;
}

const struct prb_dap_request prb_dap_scopes = {
    .command = "scopes",
    .method = "scopes",
    .when = PRB_DAP_STOPPED | PRB_DAP_LOOKS,
    .handle = handle_scopes,
};

static bool handle_step_in_targets(struct prb_dap_session *session, json_t *arguments,
                                   json_t **body_out, struct prb_error *err)
{
    json_int_t frame = 0;
    json_t *one;
    size_t i;
    if (!prb_dap_get_integer(arguments, "frameId", &frame, err))
        return false;
    json_t *wanted = json_pack("{s:I}", "frameId", frame);
    json_t *answer = prb_dap_ask(session, "step_in_targets", wanted, 0, err);
    json_decref(wanted);
    json_array_foreach(json_object_get(answer, "targets"), i, one)
    {
        prb_dap_lines_map(session, one);
    }
    *body_out = answer;
    return answer != NULL;
}

const struct prb_dap_request prb_dap_step_in_targets = {
    .command = "stepInTargets",
    .capabilities = "supportsStepInTargetsRequest",
    .method = "step_in_targets",
    .when = PRB_DAP_STOPPED,
    .handle = handle_step_in_targets,
};
