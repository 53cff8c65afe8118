/* POST /api/v1/p/{}/inject: load the probe, or give the one that is there settings. */
#include "inject/control.h"
#include "serve/doors/access.h"
#include "serve/routes/by_command.h"
#include "serve/work/targets.h"

#define SETTINGS_MAX 8

static bool answer(struct prb_serve_job *job, struct prb_error *err)
{
    const char *words[4 + 2 * SETTINGS_MAX] = {"-p", NULL, "inject"};
    char target[16];
    PRB_AUTO(prb_arena) struct prb_arena arena = {0};
    json_auto_t *body = prb_question_object(job, err);
    size_t count = 3;
    const char *key;
    json_t *value, *settings = json_object_get(body, "settings");
    if (!body || !prb_serve_target_process(job, target, err))
        return false;
    words[1] = target;
    if (json_object_size(settings) > SETTINGS_MAX)
        return prb_fail(err, PRB_USAGE, "more than %d settings", SETTINGS_MAX);
    json_object_foreach(settings, key, value)
    {
        if (prb_config_is_program(key) &&
            !prb_access_may(job->serve, job->question, PRB_MAY_EVAL, err))
            return false;
        words[count++] = "-D";
        words[count] = prb_arena_printf(&arena, "%s=%s", key, json_string_value(value));
        if (!words[count++])
            return prb_nomem(err);
    }
    return prb_answer_by_control(job, words, err);
}

const struct prb_route prb_route_inject = {
    .methods = PRB_POST,
    .path = "/api/v1/p/{}/inject",
    .summary = "load the probe; settings for it",
    .grant = PRB_MAY_CONTROL,
    .formats = "json text",
    .body = "settings",
    .slow = true,
    .seconds = 30,
    .answer = answer,
};
