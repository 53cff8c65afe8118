/* The requests that the server answers by itself, at once. */
#include <string.h>

#include "inject/probe/part.h"
#include "inject/probe/server/server.h"
#include "inject/probe/settings.h"

#define KEY_MAX 120 /* bytes */

static void status(struct prb_request *request, const struct prb_message *message)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    (void)message;
    prb_fields_number(&fields, PRB_FLD_VERSION, PRB_PROTOCOL_VERSION);
    prb_fields_number(&fields, PRB_FLD_PID, (uint64_t)getpid());
    prb_fields_number(&fields, PRB_FLD_STARTED, (uint64_t)(prb_server.started * 1e6));
    prb_fields_number(&fields, PRB_FLD_COUNT, prb_server.clients_now);
    prb_fields_text(&fields, PRB_FLD_TEXT, PRB_PROBE_VERSION, strlen(PRB_PROBE_VERSION));
    prb_parts_status(&fields);
    prb_request_end(request, &fields);
}
const struct prb_request_kind prb_request_status = {
    .type = PRB_MSG_STATUS, .name = "status", .begin = status};

static void config_list(struct prb_request *request, const struct prb_message *message)
{
    (void)message;
    for (size_t i = 0; i < prb_settings_count(); i++) {
        PRB_AUTO(prb_buf) struct prb_buf line = {0};
        prb_settings_describe(i, &line);
        if (prb_buf_ok(&line))
            prb_request_item(request, line.data, line.len);
    }
    prb_request_end(request, NULL);
}
const struct prb_request_kind prb_request_config_list = {
    .type = PRB_MSG_CONFIG_LIST, .name = "config", .begin = config_list};

/* A field as a text; false: it has none, is too long, or holds a NUL, and the request is answered.
 */
static bool take_text(struct prb_request *request, const struct prb_message *message,
                      enum prb_message_field field, char *out, size_t cap)
{
    const char *text;
    size_t len;
    if (!prb_message_text(message, field, &text, &len) || len >= cap || memchr(text, 0, len)) {
        prb_request_failf(request, PRB_USAGE, NULL, "a setting needs a %s of at most %zu bytes",
                          field == PRB_FLD_KEY ? "name" : "value", cap - 1);
        return false;
    }
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

static void answer_value(struct prb_request *request, const char *key)
{
    PRB_AUTO(prb_buf) struct prb_buf fields = {0};
    char value[PRB_SETTING_TEXT_MAX];
    int len = prb_settings_get(key, value, sizeof value);
    prb_fields_text(&fields, PRB_FLD_VALUE, value, len < 0 ? 0 : (size_t)len);
    prb_request_end(request, &fields);
}

static void config_get(struct prb_request *request, const struct prb_message *message)
{
    char key[KEY_MAX], value[PRB_SETTING_TEXT_MAX];
    struct prb_error err;
    if (!take_text(request, message, PRB_FLD_KEY, key, sizeof key))
        return;
    if (prb_settings_get(key, value, sizeof value) >= 0) {
        answer_value(request, key);
        return;
    }
    prb_settings_set(key, "", &err); /* says which was meant */
    prb_request_fail(request, &err);
}
const struct prb_request_kind prb_request_config_get = {
    .type = PRB_MSG_CONFIG_GET, .name = "config", .begin = config_get};

static void config_set(struct prb_request *request, const struct prb_message *message)
{
    char key[KEY_MAX], value[PRB_SETTING_TEXT_MAX];
    struct prb_error err;
    if (!take_text(request, message, PRB_FLD_KEY, key, sizeof key) ||
        !take_text(request, message, PRB_FLD_VALUE, value, sizeof value))
        return;
    unsigned before = prb_parts_on();
    int index = prb_setting_find(key);
    if ((index >= 0 && !prb_parts_accept(key, value, &err)) ||
        !prb_settings_set(key, value, &err)) {
        prb_request_fail(request, &err);
        return;
    }
    prb_parts_follow(before, 0);
    answer_value(request, key);
}
const struct prb_request_kind prb_request_config_set = {
    .type = PRB_MSG_CONFIG_SET, .name = "config", .logged = true, .begin = config_set};

/* Answered by the server's end (finish.c). */
static void detach(struct prb_request *request, const struct prb_message *message)
{
    (void)request, (void)message;
    prb_server_stop();
}

/* It cannot be called back. */
static void detach_anyway(struct prb_request *request, enum prb_cancel why)
{
    (void)request, (void)why;
}

const struct prb_request_kind prb_request_detach = {.type = PRB_MSG_DETACH,
                                                    .name = "detach",
                                                    .logged = true,
                                                    .begin = detach,
                                                    .cancel = detach_anyway};
