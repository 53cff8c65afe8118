/* Settings of each rank's probe.  args: words (keys; none: all).  result: struct prb_eval_answers: lines "KEY = VALUE". */
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "fleet/kind/answers.h"
#include "inject/control.h"

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)
PRB_DEFINE_AUTO(prb_strings, struct prb_strings, prb_strings_free)

/* Of "key\tvalue\t…". */
static bool is_wanted(const char *line, const json_t *words)
{
    size_t len = strcspn(line, "\t"), i;
    const json_t *word;
    json_array_foreach(words, i, word)
    {
        const char *key = json_string_value(word);
        if (key && strncasecmp(line, key, len) == 0 && !key[len])
            return true;
    }
    return json_array_size(words) == 0;
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    const json_t *words = json_object_get(args, "words");
    pid_t pid = seat->member.pid;
    PRB_AUTO(prb_strings) struct prb_strings list = {0};
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    /* To read what a probe would begin with, none is loaded. */
    bool seen = prb_control_seen(pid);
    PRB_AUTO(prb_control) struct prb_control *control = seen ? prb_control_open(pid, err) : NULL;
    if (seen && !control)
        return false;
    if (!(control ? prb_control_config_list(control, &list, err) : prb_config_defaults(&list, err)))
        return false;
    for (size_t i = 0; i < list.count; i++) {
        const char *line = list.items[i], *value = line + strcspn(line, "\t");
        if (*value && is_wanted(line, words))
            prb_buf_addf(&text, "%s%.*s = %.*s", text.len ? "\n" : "", (int)(value - line), line,
                         (int)strcspn(value + 1, "\t"), value + 1);
    }
    if (!control)
        prb_buf_adds(&text, "\n(it has no probe: these are the defaults)");
    prb_buf_addc(&text, '\0');
    return prb_buf_ok(&text) ? prb_text_part(out, text.data, false, err) : prb_nomem(err);
}

const struct prb_fleet_kind prb_fleet_kind_settings = {
    .name = "settings",
    .budget = 5,
    .of_rank = of_rank,
    .at_root = prb_texts_of_host,
};
