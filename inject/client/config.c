/* What can be said of settings without a probe. */
#include <string.h>

#include "base/buf.h"
#include "inject/control.h"
#include "inject/probe/setting_table.h"

static char *key_of(const char *word) { return strndup(word, strcspn(word, "=")); }

/* Blanks are left out as the probe does it. */
bool prb_config_is_program(const char *word)
{
    PRB_AUTO_FREE char *key = key_of(word + strspn(word, " \t\r"));
    for (size_t len = key ? strlen(key) : 0; len && strchr(" \t\r", key[len - 1]);)
        key[--len] = '\0';
    int index = key ? prb_setting_find(key) : -1;
    return index >= 0 && prb_setting_at((size_t)index)->type == PRB_SETTING_PROGRAM;
}

bool prb_config_check(const char *word, struct prb_error *err)
{
    const char *equals = strchr(word, '=');
    struct prb_setting_value value;
    PRB_AUTO_FREE char *key = key_of(word);
    if (!key)
        return prb_nomem(err);
    int index = prb_setting_find(key);
    if (index < 0)
        return prb_setting_unknown(key, err);
    return !equals || prb_setting_read(index, equals + 1, &value, err);
}

bool prb_config_defaults(struct prb_strings *out, struct prb_error *err)
{
    *out = (struct prb_strings){.items = calloc(prb_setting_count(), sizeof *out->items)};
    for (size_t i = 0; out->items && i < prb_setting_count(); i++) {
        const struct prb_setting *setting = prb_setting_at(i);
        struct prb_setting_value value;
        char text[PRB_SETTING_TEXT_MAX];
        if (!prb_setting_read((int)i, setting->fallback, &value, NULL))
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
