/* Settings from the environment: settings.h. */
#include "fleet/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum unit { TIME, SIZE, COUNT };

static const struct {
    const char *letters; /* behind a number, which the factors stand for */
    double factors[4];
    const char *what;
} units[] = {
    [TIME] = {"smhd", {1, 60, 3600, 86400}, "a time"},
    [SIZE] = {"KMGT", {0x1p10, 0x1p20, 0x1p30, 0x1p40}, "a size"},
    [COUNT] = {"", {0}, "a number"},
};

static const struct setting {
    const char *name;
    enum unit unit;
    const char *first, *least, *most;
} settings[PRB_FLEET_SETTINGS] = {
#define S(name, dotted, unit, first, least, most, doc) {dotted, unit, first, least, most},
#include "fleet/settings.def"
#undef S
};

/* Digits with at most one point, in any locale, and one letter at the most. */
static bool parse(const char *text, enum unit unit, double *out)
{
    const char *letter;
    double value = 0, scale = 1;
    bool fraction = false, any = false;
    for (; (*text >= '0' && *text <= '9') || (*text == '.' && !fraction && unit != COUNT); text++) {
        if (*text == '.') {
            fraction = true;
            continue;
        }
        value = value * 10 + (*text - '0');
        scale *= fraction ? 10 : 1;
        any = true;
    }
    value /= scale;
    if (any && *text && (letter = strchr(units[unit].letters, *text))) {
        value *= units[unit].factors[letter - units[unit].letters];
        text++;
    }
    *out = value;
    return any && !*text;
}

static void name_variable(const struct setting *setting, char out[80])
{
    snprintf(out, 80, "PROBING_CLUSTER_%s", setting->name);
    for (; *out; out++)
        *out = *out == '.' ? '_' : *out >= 'a' && *out <= 'z' ? (char)(*out - 'a' + 'A') : *out;
}

/* False: it is set to what is no such value.  *out stays where it is not set. */
static bool take(const struct setting *setting, double *out)
{
    char variable[80];
    double value, least = 0, most = 0;
    name_variable(setting, variable);
    const char *text = getenv(variable);
    if (!text || !*text)
        return true;
    parse(setting->least, setting->unit, &least);
    parse(setting->most, setting->unit, &most);
    if (!parse(text, setting->unit, &value) || !(value >= least && value <= most))
        return false;
    *out = value;
    return true;
}

double prb_fleet_setting_or(enum prb_fleet_setting which, double otherwise)
{
    double value = otherwise;
    take(&settings[which], &value);
    return value;
}

double prb_fleet_setting(enum prb_fleet_setting which)
{
    double first = 0;
    if (*settings[which].first)
        parse(settings[which].first, settings[which].unit, &first);
    return prb_fleet_setting_or(which, first);
}

bool prb_fleet_settings_check(struct prb_error *err)
{
    for (size_t i = 0; i < PRB_FLEET_SETTINGS; i++) {
        char variable[80];
        double value;
        if (take(&settings[i], &value))
            continue;
        name_variable(&settings[i], variable);
        return prb_fail(err, PRB_USAGE, "%s must be %s from %s to %s, not \"%.40s\"", variable,
                        units[settings[i].unit].what, settings[i].least, settings[i].most,
                        getenv(variable));
    }
    return true;
}
