/*
 * The settings' values.  One lock, held for copies of a few bytes only; fork(2) waits for it
 * (own_fds.c), so that a child finds it free.
 */
#include "inject/probe/settings.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "inject/probe/setting_value.h"

struct setting {
    const char *key;
    enum prb_setting_type type;
    const char *fallback, *unit;
    double least, most;
    const char *doc;
};

static const struct setting settings[] = {
#define S(key, type, fallback, unit, least, most, doc)                                             \
    {key, PRB_SETTING_##type, fallback, unit, least, most, doc},
#include "inject/probe/settings.def"
#undef S
};

enum { COUNT = sizeof settings / sizeof *settings };

/* Names of the environment that are not built by the rule. */
static const struct {
    const char *name, *key;
} older[] = {
    {"PROBE_PPROF", "probing.pprof"},
    {"PROBE_ADDR", "probing.listen"},
    {"PROBE_BG", "probing.background"},
    {"PROBE_TORCH_EXPRS", "probing.torch.exprs"},
};

struct value {
    bool set;
    double number;
    char text[PRB_SETTING_TEXT_MAX]; /* of a TEXT */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct value values[COUNT];
static void (*on_change)(void);

void prb_settings_lock(void) { pthread_mutex_lock(&lock); }
void prb_settings_unlock(void) { pthread_mutex_unlock(&lock); }

static int find(const char *key)
{
    for (int i = 0; i < COUNT; i++)
        if (!strcasecmp(settings[i].key, key))
            return i;
    return -1;
}

size_t prb_settings_count(void) { return COUNT; }

bool prb_settings_given(const char *key)
{
    int index = find(key);
    prb_settings_lock();
    bool given = index >= 0 && values[index].set;
    prb_settings_unlock();
    return given;
}

const char *prb_settings_key(size_t index) { return settings[index].key; }

void prb_settings_reset(void)
{
    prb_settings_lock();
    for (size_t i = 0; i < COUNT; i++)
        values[i].set = false;
    prb_settings_unlock();
}

void prb_settings_on_change(void (*changed)(void))
{
    prb_settings_lock();
    on_change = changed;
    prb_settings_unlock();
}

static bool unknown(const char *key, struct prb_error *err)
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

/* What a value of settings[index] would be. */
static bool read_value(int index, const char *text, struct value *out, struct prb_error *err)
{
    const struct setting *setting = &settings[index];
    size_t len = strlen(text);
    out->set = true;
    if (setting->type == PRB_SETTING_TEXT) {
        if (len >= sizeof out->text)
            return prb_fail(err, PRB_USAGE, "%s takes at most %d bytes, these are %zu",
                            setting->key, PRB_SETTING_TEXT_MAX - 1, len);
        if (strpbrk(text, "\n\t"))
            return prb_fail(err, PRB_USAGE, "%s takes one line without tabs", setting->key);
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

static void current(int index, struct value *out)
{
    prb_settings_lock();
    *out = values[index];
    prb_settings_unlock();
    if (!out->set)
        read_value(index, settings[index].fallback, out, NULL);
}

static void format(int index, const struct value *value, char *out, size_t cap)
{
    if (settings[index].type == PRB_SETTING_TEXT)
        snprintf(out, cap, "%s", value->text);
    else
        prb_value_format(settings[index].type, settings[index].unit, value->number, out, cap);
}

int prb_settings_get(const char *key, char *out, size_t cap)
{
    int index = find(key);
    if (index < 0)
        return -1;
    struct value value;
    char text[PRB_SETTING_TEXT_MAX];
    current(index, &value);
    format(index, &value, text, sizeof text);
    snprintf(out, cap, "%s", text);
    return (int)strlen(text);
}

double prb_settings_number(const char *key, double fallback)
{
    int index = find(key);
    if (index < 0 || settings[index].type == PRB_SETTING_TEXT)
        return fallback;
    struct value value;
    current(index, &value);
    return value.number;
}

bool prb_settings_set(const char *key, const char *text, struct prb_error *err)
{
    int index = find(key);
    struct value value = {0};
    if (index < 0)
        return unknown(key, err);
    if (!read_value(index, text, &value, err))
        return false;
    prb_settings_lock();
    values[index] = value;
    void (*changed)(void) = on_change;
    prb_settings_unlock();
    if (changed)
        changed();
    return true;
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t len = strlen(text);
    while (len && strchr(" \t\r", text[len - 1]))
        text[--len] = '\0';
    return text;
}

/* One line of set_lines: checked, and set if apply. */
static bool do_line(char *line, bool apply, struct prb_error *err)
{
    line = trim(line);
    if (!*line)
        return true;
    char *equals = strchr(line, '=');
    if (!equals)
        return prb_fail(err, PRB_USAGE, "a setting is KEY=VALUE, not \"%.60s\"", line);
    *equals = '\0';
    const char *key = trim(line), *text = trim(equals + 1);
    struct value value = {0};
    int index = find(key);
    if (index < 0)
        return unknown(key, err);
    return apply ? prb_settings_set(key, text, err) : read_value(index, text, &value, err);
}

bool prb_settings_set_lines(const char *lines, struct prb_error *err)
{
    for (int pass = 0; pass < 2; pass++) {
        PRB_AUTO_FREE char *copy = strdup(lines);
        char *rest = copy;
        if (!copy)
            return prb_nomem(err);
        for (char *line; (line = strsep(&rest, "\n"));)
            if (!do_line(line, pass, err))
                return false;
    }
    return true;
}

/* Whether PROBING_A_B (len bytes) stands for the key: letters in any case, '_' for '.' and '_'. */
static bool names_key(const char *name, size_t len, const char *key)
{
    if (strlen(key) != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        char want = key[i] == '.' ? '_' : key[i];
        char have = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
        if (want != have)
            return false;
    }
    return true;
}

bool prb_settings_set_variable(const char *variable, struct prb_error *err)
{
    const char *equals = strchr(variable, '=');
    if (!equals || strncmp(variable, "PROB", 4))
        return true;
    size_t len = (size_t)(equals - variable);
    for (size_t i = 0; i < sizeof older / sizeof *older; i++)
        if (strlen(older[i].name) == len && !strncmp(older[i].name, variable, len))
            return prb_settings_set(older[i].key, equals + 1, err);
    for (int i = 0; i < COUNT; i++)
        if (names_key(variable, len, settings[i].key))
            return prb_settings_set(settings[i].key, equals + 1, err);
    return true;
}

void prb_settings_describe(size_t index, struct prb_buf *out)
{
    struct value value;
    char text[PRB_SETTING_TEXT_MAX];
    current((int)index, &value);
    format((int)index, &value, text, sizeof text);
    prb_buf_addf(out, "%s\t%s\t%s\t%s\t%s", settings[index].key, text, settings[index].fallback,
                 settings[index].unit, settings[index].doc);
}
