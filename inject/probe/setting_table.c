#include "inject/probe/setting_table.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "inject/probe/serve/address.h"
#include "inject/probe/torch/ending.h"
#include "inject/probe/torch/spec.h"
#include "probing.h"

static const struct prb_setting settings[] = {
#define S(key, type, fallback, unit, least, most, doc)                                             \
    {key, PRB_SETTING_##type, fallback, unit, least, most, doc},
#include "inject/probe/settings.def"
#undef S
};

/* Texts that have a grammar of their own. */
static const struct {
    const char *key;
    bool (*check)(const char *text, struct prb_error *err);
} grammars[] = {
    {"probing.listen", prb_serve_address_check},
    {"probing.torch.profiling", prb_torch_spec_check},
    {"probing.torch.exprs", prb_torch_exprs_check},
    {"probing.torch.step", prb_torch_ending_check},
};

enum { COUNT = sizeof settings / sizeof *settings };
_Static_assert(COUNT <= PRB_SETTINGS_MAX, "room for the values");

bool prb_setting_is_text(const struct prb_setting *setting)
{
    return setting->type == PRB_SETTING_TEXT || setting->type == PRB_SETTING_PROGRAM;
}

size_t prb_setting_count(void) { return COUNT; }

const struct prb_setting *prb_setting_at(size_t index) { return &settings[index]; }

int prb_setting_find(const char *key)
{
    for (int i = 0; i < COUNT; i++)
        if (!strcasecmp(settings[i].key, key))
            return i;
    return -1;
}

bool prb_setting_unknown(const char *key, struct prb_error *err)
{
    const char *keys[COUNT];
    char full[80];
    for (int i = 0; i < COUNT; i++)
        keys[i] = settings[i].key;
    snprintf(full, sizeof full, "%s%s", strncmp(key, "probing.", 8) ? "probing." : "", key);
    const char *near = prb_nearest(full, keys, COUNT);
    prb_fail(err, PRB_NOT_FOUND, "there is no setting \"%.60s\"", key);
    return near ? prb_error_remedy(err, "did you mean %s?", near)
                : prb_error_remedy(err, "`config` lists the settings");
}

static bool obeys_grammar(const char *key, const char *text, struct prb_error *err)
{
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++)
        if (!strcmp(grammars[i].key, key))
            return grammars[i].check(text, err);
    return true;
}

bool prb_setting_read(int index, const char *text, struct prb_setting_value *out,
                      struct prb_error *err)
{
    const struct prb_setting *setting = &settings[index];
    size_t len = strlen(text);
    out->set = true;
    if (prb_setting_is_text(setting)) {
        if (len >= sizeof out->text)
            return prb_fail(err, PRB_USAGE, "%s takes at most %d bytes, these are %zu",
                            setting->key, PRB_SETTING_TEXT_MAX - 1, len);
        if (strpbrk(text, "\n\t"))
            return prb_fail(err, PRB_USAGE, "%s takes one line without tabs", setting->key);
        if (!obeys_grammar(setting->key, text, err))
            return false;
        memcpy(out->text, text, len + 1);
        return true;
    }
    if (!prb_value_parse(setting->type, setting->unit, text, &out->number))
        return prb_fail(err, PRB_USAGE, "%s must be %s, not \"%.60s\"", setting->key,
                        prb_value_wanted(setting->type), text);
    if (setting->most > 0 && (out->number < setting->least || out->number > setting->most)) {
        char least[40], most[40];
        prb_value_format(setting->type, setting->unit, setting->least, least, sizeof least);
        prb_value_format(setting->type, setting->unit, setting->most, most, sizeof most);
        return prb_fail(err, PRB_USAGE, "%s must be from %s to %s (%s), not \"%.60s\"",
                        setting->key, least, most, setting->unit, text);
    }
    return true;
}

void prb_setting_text(int index, const struct prb_setting_value *value, char *out, size_t cap)
{
    if (prb_setting_is_text(&settings[index]))
        snprintf(out, cap, "%s", value->text);
    else
        prb_value_format(settings[index].type, settings[index].unit, value->number, out, cap);
}
