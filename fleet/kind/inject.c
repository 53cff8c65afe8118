/*
 * Load the probe into each rank.  args: settings (lines "KEY=VALUE" for it), method (enum prb_inject_method), force,
 * wait (s).  result: struct prb_eval_answers.
 */
#include <string.h>

#include "base/error.h"
#include "fleet/kind/answers.h"
#include "inject/control.h"
#include "inject/inject.h"

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)

/* One that was there before gets them by its socket. */
static bool set_all(pid_t pid, const char *settings, struct prb_error *err)
{
    PRB_AUTO_FREE char *text = strdup(settings);
    char *state = NULL;
    if (!text)
        return prb_nomem(err);
    PRB_AUTO(prb_control) struct prb_control *control = prb_control_open(pid, err);
    for (char *key = strtok_r(text, "\n", &state); control && key;
         key = strtok_r(NULL, "\n", &state)) {
        struct prb_error why = {0};
        char *equals = strchr(key, '=');
        if (!equals || (!prb_config_check(key, &why) && why.code == PRB_UNSUPPORTED))
            continue; /* of a later release */
        *equals = '\0';
        if (!prb_control_config_set(control, key, equals + 1, err))
            return false;
    }
    return control != NULL;
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    json_int_t method = json_integer_value(json_object_get(args, "method"));
    const struct prb_inject_options options = {
        .method = method >= PRB_INJECT_AUTO && method <= PRB_INJECT_REMOTE_EXEC
                      ? (enum prb_inject_method)method
                      : PRB_INJECT_AUTO,
        .settings = json_string_value(json_object_get(args, "settings")),
        .force = json_is_true(json_object_get(args, "force")),
        .wait = json_number_value(json_object_get(args, "wait")),
    };
    struct prb_inject_report report = {0};
    if (!prb_inject(seat->member.pid, &options, &report, err) ||
        (report.already && options.settings && !set_all(seat->member.pid, options.settings, err)))
        return false;
    return prb_text_part(out,
                         report.already           ? "a probe was there already"
                         : report.will_load_later ? "it is stopped: the probe loads when it resumes"
                                                  : "loaded",
                         false, err);
}

const struct prb_fleet_kind prb_fleet_kind_inject = {
    .name = "inject",
    .needs = PRB_FLEET_CONTROL,
    .budget = 30,
    .of_rank = of_rank,
    .at_root = prb_texts_of_host,
};
