/* The requests to a probe, each a function (control.h). */
#include <stdio.h>
#include <string.h>

#include "inject/client/ask.h"

#define ANSWER_MS 10000 /* for requests that need no Python */
#define COMPLETE_MS 5000

static bool out_of_memory(struct prb_error *err) { return prb_nomem(err); }

static bool is_set(const struct prb_message *message, enum prb_message_field key)
{
    uint64_t value = 0;
    return prb_message_number(message, key, &value) && value;
}

struct listener {
    const struct prb_eval_options *options;
};

static bool hear(void *context, const struct prb_message *part)
{
    const struct prb_eval_options *options = ((struct listener *)context)->options;
    const char *text;
    size_t len;
    uint64_t stream = 1;
    prb_message_number(part, PRB_FLD_STREAM, &stream);
    if (!options->output || !prb_message_text(part, PRB_FLD_OUTPUT, &text, &len))
        return true;
    return options->output(options->context, (int)stream, text, len);
}

static bool is_cancelled(void *context)
{
    const struct prb_eval_options *options = ((struct listener *)context)->options;
    return options->cancelled && options->cancelled(options->context);
}

static void add_time(struct prb_buf *fields, enum prb_message_field key, double seconds)
{
    if (seconds > 0)
        prb_fields_number(fields, key,
                          seconds < 1e9 ? (uint64_t)(seconds * 1000 + 0.999) : (uint64_t)1e12);
}

bool prb_control_eval(struct prb_control *control, const struct prb_eval_options *options,
                      struct prb_eval_result *result, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    struct listener listener = {options};
    struct prb_ask ask = {.part = hear, .cancelled = is_cancelled, .context = &listener};
    struct prb_message end;
    uint64_t microseconds = 0;
    prb_fields_number(&fields, PRB_FLD_MODE, options->mode);
    prb_fields_text(&fields, PRB_FLD_SOURCE, options->code, options->code_len);
    if (options->name_space)
        prb_fields_text(&fields, PRB_FLD_NAMESPACE, options->name_space,
                        strlen(options->name_space));
    if (options->thread) {
        prb_fields_number(&fields, PRB_FLD_THREAD, options->thread);
        prb_fields_number(&fields, PRB_FLD_FRAME, options->function ? UINT32_MAX : options->frame);
        if (options->function)
            prb_fields_text(&fields, PRB_FLD_FUNCTION, options->function,
                            strlen(options->function));
    }
    add_time(&fields, PRB_FLD_GIL_TIMEOUT_MS, options->gil_timeout);
    add_time(&fields, PRB_FLD_TIMEOUT_MS, options->timeout);
    if (!prb_buf_ok(&fields))
        return out_of_memory(err);
    if (!prb_control_ask(control, PRB_MSG_EVAL, &fields, &ask, &end, err))
        return false;
    char *text = prb_message_copy(&end, PRB_FLD_TEXT);
    if (!text)
        return out_of_memory(err);
    prb_message_number(&end, PRB_FLD_MICROSECONDS, &microseconds);
    *result = (struct prb_eval_result){
        .raised = is_set(&end, PRB_FLD_RAISED),
        .incomplete = is_set(&end, PRB_FLD_INCOMPLETE),
        .none = is_set(&end, PRB_FLD_NONE),
        .text = text,
        .seconds = (double)microseconds / 1e6,
    };
    return true;
}

void prb_eval_result_free(struct prb_eval_result *result)
{
    free(result->text);
    *result = (struct prb_eval_result){0};
}

struct strings {
    struct prb_strings items;
    size_t cap;
    bool failed;
};

static bool add_item(void *context, const struct prb_message *part)
{
    struct strings *strings = context;
    char *text = prb_message_copy(part, PRB_FLD_ITEM);
    if (!text || !PRB_GROW(strings->items.items, strings->items.count, strings->cap)) {
        free(text);
        strings->failed = true;
        return false;
    }
    strings->items.items[strings->items.count++] = text;
    return true;
}

static bool ask_items(struct prb_control *control, enum prb_message_type type,
                      const struct prb_buf *fields, int wait_ms, struct prb_strings *out,
                      struct prb_error *err)
{
    struct strings strings = {0};
    struct prb_ask ask = {.wait_ms = wait_ms, .part = add_item, .context = &strings};
    struct prb_message end;
    bool ok = prb_control_ask(control, type, fields, &ask, &end, err);
    if (strings.failed)
        ok = out_of_memory(err);
    if (ok)
        *out = strings.items;
    else
        prb_strings_free(&strings.items);
    return ok;
}

void prb_strings_free(struct prb_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
    *strings = (struct prb_strings){0};
}

bool prb_control_complete(struct prb_control *control, const char *text, size_t cursor,
                          uint64_t thread, struct prb_strings *out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    prb_fields_text(&fields, PRB_FLD_SOURCE, text, strlen(text));
    prb_fields_number(&fields, PRB_FLD_CURSOR, cursor);
    if (thread)
        prb_fields_number(&fields, PRB_FLD_THREAD, thread);
    if (!prb_buf_ok(&fields))
        return out_of_memory(err);
    return ask_items(control, PRB_MSG_COMPLETE, &fields, COMPLETE_MS, out, err);
}

bool prb_control_config_list(struct prb_control *control, struct prb_strings *out,
                             struct prb_error *err)
{
    return ask_items(control, PRB_MSG_CONFIG_LIST, NULL, ANSWER_MS, out, err);
}

bool prb_control_config_get(struct prb_control *control, const char *key, char **value,
                            struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    struct prb_ask ask = {.wait_ms = ANSWER_MS};
    struct prb_message end;
    prb_fields_text(&fields, PRB_FLD_KEY, key, strlen(key));
    if (!prb_buf_ok(&fields))
        return out_of_memory(err);
    if (!prb_control_ask(control, PRB_MSG_CONFIG_GET, &fields, &ask, &end, err))
        return false;
    char *text = prb_message_copy(&end, PRB_FLD_VALUE);
    if (!text)
        return out_of_memory(err);
    *value = text;
    return true;
}

bool prb_control_config_set(struct prb_control *control, const char *key, const char *value,
                            struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    struct prb_ask ask = {.wait_ms = ANSWER_MS};
    struct prb_message end;
    prb_fields_text(&fields, PRB_FLD_KEY, key, strlen(key));
    prb_fields_text(&fields, PRB_FLD_VALUE, value, strlen(value));
    if (!prb_buf_ok(&fields))
        return out_of_memory(err);
    return prb_control_ask(control, PRB_MSG_CONFIG_SET, &fields, &ask, &end, err);
}

bool prb_control_torch(struct prb_control *control, const char *lines, char *state, size_t size,
                       int64_t *steps_out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    struct prb_ask ask = {.wait_ms = ANSWER_MS};
    struct prb_message end;
    uint64_t steps = 0;
    if (lines)
        prb_fields_text(&fields, PRB_FLD_VALUE, lines, strlen(lines));
    if (!prb_buf_ok(&fields))
        return out_of_memory(err);
    if (!prb_control_ask(control, PRB_MSG_TORCH, &fields, &ask, &end, err))
        return false;
    prb_message_text_into(&end, PRB_FLD_TEXT, state, size);
    prb_message_number(&end, PRB_FLD_COUNT, &steps);
    *steps_out = (int64_t)steps;
    return true;
}

bool prb_control_status(struct prb_control *control, struct prb_probe_status *out,
                        struct prb_error *err)
{
    struct prb_ask ask = {.wait_ms = ANSWER_MS};
    struct prb_message end;
    uint64_t version = 0, started = 0, clients = 0, evaluations = 0;
    if (!prb_control_ask(control, PRB_MSG_STATUS, NULL, &ask, &end, err))
        return false;
    prb_message_number(&end, PRB_FLD_VERSION, &version);
    prb_message_number(&end, PRB_FLD_STARTED, &started);
    prb_message_number(&end, PRB_FLD_COUNT, &clients);
    prb_message_number(&end, PRB_FLD_EVALUATIONS, &evaluations);
    *out = (struct prb_probe_status){
        .version = (int64_t)version,
        .started = (double)started / 1e6,
        .clients = (unsigned)clients,
        .evaluations = (unsigned)evaluations,
    };
    prb_message_text_into(&end, PRB_FLD_TEXT, out->probe_version, sizeof out->probe_version);
    prb_message_text_into(&end, PRB_FLD_PATH, out->data_dir, sizeof out->data_dir);
    return true;
}

bool prb_control_detach(struct prb_control *control, struct prb_error *err)
{
    struct prb_ask ask = {.wait_ms = ANSWER_MS};
    struct prb_message end;
    return prb_control_ask(control, PRB_MSG_DETACH, NULL, &ask, &end, err);
}
