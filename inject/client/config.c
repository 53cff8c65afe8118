/* What can be said of settings without a probe. */
#include <string.h>

#include "base/buf.h"
#include "inject/control.h"
#include "inject/probe/setting_table.h"

bool prb_config_check(const char *word, struct prb_error *err)
{
    const char *equals = strchr(word, '=');
    struct prb_setting_value value;
    PRB_AUTO_FREE char *key = strndup(word, equals ? (size_t)(equals - word) : strlen(word));
    if (!key)
        return prb_nomem(err);
    int index = prb_setting_find(key);
    if (index < 0)
        return prb_setting_unknown(key, err);
    return !equals ||
           (prb_setting_has_effect(index, err) && prb_setting_read(index, equals + 1, &value, err));
}

bool prb_config_defaults(struct prb_strings *out, struct prb_error *err)
{
    *out = (struct prb_strings){.items = calloc(prb_setting_count(), sizeof *out->items)};
    for (size_t i = 0; out->items && i < prb_setting_count(); i++) {
        const struct prb_setting *setting = prb_setting_at(i);
        struct prb_setting_value value;
        char text[PRB_SETTING_TEXT_MAX];
        if (setting->later || !prb_setting_read((int)i, setting->fallback, &value, NULL))
            continue;
        prb_setting_text((int)i, &value, text, sizeof text);
        PRB_AUTO(prb_buf) struct prb_buf line = {0};
        prb_buf_addf(&line, "%s\t%s\t%s\t%s\t%s", setting->key, text, setting->fallback,
                     setting->unit, setting->doc);
        if (!prb_buf_ok(&line))
            break;
        out->items[out->count++] = prb_buf_steal(&line);
    }
    if (out->items && out->count)
        return true;
    prb_strings_free(out);
    return prb_nomem(err);
}
