/*
 * Load the probe into each rank.  args: settings (lines "KEY=VALUE" for it), method (enum prb_inject_method), force,
 * wait (s); from an agent: as_user.  result: struct prb_eval_answers.
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

/* Who asks an agent may control, and not run code; a program of his host may be another one here.  The
 * caller frees it. */
static char *without_programs(const char *settings)
{
    PRB_AUTO(prb_buf) struct prb_buf kept = {0};
    prb_buf_adds(&kept, "");
    for (const char *end; *settings; settings = end + (*end == '\n')) {
        end = settings + strcspn(settings, "\n");
        PRB_AUTO_FREE char *line = strndup(settings, (size_t)(end - settings));
        if (!line)
            return NULL;
        if (!prb_config_is_program(line))
            prb_buf_addf(&kept, "%s\n", line);
    }
    return prb_buf_ok(&kept) ? prb_buf_steal(&kept) : NULL;
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    const char *settings = json_string_value(json_object_get(args, "settings"));
    bool of_agent = settings && json_is_true(json_object_get(args, "as_user"));
    PRB_AUTO_FREE char *kept = of_agent ? without_programs(settings) : NULL;
    if (of_agent && !kept)
        return prb_nomem(err);
    json_int_t method = json_integer_value(json_object_get(args, "method"));
    const struct prb_inject_options options = {
        .method = method >= PRB_INJECT_AUTO && method <= PRB_INJECT_REMOTE_EXEC
                      ? (enum prb_inject_method)method
                      : PRB_INJECT_AUTO,
        .settings = of_agent ? kept : settings,
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
