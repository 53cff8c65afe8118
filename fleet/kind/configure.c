/*
 * Change settings of each rank's probe, which is loaded where there is none.  args: words ("KEY=VALUE", or KEY).
 * result: struct prb_eval_answers: lines "KEY = VALUE", as each was understood, and notes.
 */
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "fleet/kind/answers.h"
#include "inject/control.h"
#include "inject/inject.h"

#define WORDS_MAX 100

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)

/* All are understood before one is changed.  The rank is there, whatever is not found.  Who asks an agent
 * may control, and not run code. */
static bool check_words(const json_t *words, bool of_agent, struct prb_error *err)
{
    const json_t *word;
    size_t i;
    if (!json_array_size(words) || json_array_size(words) > WORDS_MAX)
        return prb_fail(err, PRB_USAGE, "between 1 and 100 settings can be changed at once");
    json_array_foreach(words, i, word)
    {
        const char *text = json_string_value(word);
        if (!text)
            return prb_fail(err, PRB_USAGE, "a setting is not a string");
        if (of_agent && strchr(text, '=') && prb_config_is_program(text))
            return prb_fail(err, PRB_PERMISSION, "%.40s names a program: it is set on its host",
                            text);
        if (!prb_config_check(text, err)) {
            err->code = PRB_USAGE;
            return false;
        }
    }
    return true;
}

static void add_note(void *context, const char *line)
{
    struct prb_buf *text = context;
    prb_buf_addf(text, "%s(%s)", text->len ? "\n" : "", line);
}

static bool set(struct prb_control *control, const char *word, struct prb_buf *text,
                struct prb_error *err)
{
    const char *equals = strchr(word, '=');
    PRB_AUTO_FREE char *key = equals ? strndup(word, (size_t)(equals - word)) : strdup(word);
    PRB_AUTO_FREE char *value = NULL;
    struct prb_error why;
    if (!key)
        return prb_nomem(err);
    if ((equals && !prb_control_config_set(control, key, equals + 1, err)) ||
        !prb_control_config_get(control, key, &value, err))
        return false;
    prb_buf_addf(text, "%s%s = %s", text->len ? "\n" : "", key, value);
    bool torch = strcasecmp(key, "probing.torch.profiling") == 0 ||
                 strcasecmp(key, "probing.torch.step") == 0;
    /* Variables are watched in a program without PyTorch, too. */
    bool exprs = strcasecmp(key, "probing.torch.exprs") == 0 && value[0];
    if (!equals || (!torch && !exprs) || prb_torch_follow(control, false, add_note, text, &why))
        return true;
    if (torch) {
        *err = why;
        return false;
    }
    add_note(text, why.text);
    return true;
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    const json_t *words = json_object_get(args, "words"), *word;
    struct prb_inject_report report = {0};
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    size_t i;
    if (!check_words(words, json_is_true(json_object_get(args, "as_user")), err))
        return false;
    PRB_AUTO(prb_control)
    struct prb_control *control = prb_ensure_probe(seat->member.pid, &report, err);
    bool good = control != NULL;
    json_array_foreach(words, i, word) good =
        good && set(control, json_string_value(word), &text, err);
    if (!good) {
        if (err->code == PRB_NOT_FOUND && prb_fleet_seat_lives(seat))
            err->code = PRB_PERMISSION;
        return false;
    }
    prb_buf_addc(&text, '\0');
    return prb_buf_ok(&text) ? prb_text_part(out, text.data, false, err) : prb_nomem(err);
}

const struct prb_fleet_kind prb_fleet_kind_configure = {
    .name = "configure",
    .needs = PRB_FLEET_CONTROL,
    .budget = 30,
    .of_rank = of_rank,
    .at_root = prb_texts_of_host,
};
