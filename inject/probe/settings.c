/*
 * The settings' values.  One lock, held for copies of a few bytes only; fork(2) waits for it
 * (own_fds.c), so that a child finds it free.
 */
#include "inject/probe/settings.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "inject/probe/setting_table.h"

/* Names of the environment that are not built by the rule. */
static const struct {
    const char *name, *key;
} older[] = {
    {"PROBE_PPROF", "probing.pprof"},
    {"PROBE_ADDR", "probing.listen"},
    {"PROBING_PORT", "probing.listen"},
    {"PROBING_SERVER_ADDR", "probing.listen"},
    {"PROBE_BG", "probing.background"},
    {"PROBE_TORCH_EXPRS", "probing.torch.exprs"},
    {"PROBING_CPU_SAMPLE_MS", "probing.cpu.sample_interval"},
    {"PROBING_GPU_SAMPLE_MS", "probing.gpu.sample_interval"},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct prb_setting_value values[PRB_SETTINGS_MAX];
static bool refused[PRB_SETTINGS_MAX];
static void (*on_change)(void);

void prb_settings_lock(void) { pthread_mutex_lock(&lock); }
void prb_settings_unlock(void) { pthread_mutex_unlock(&lock); }

size_t prb_settings_count(void) { return prb_setting_count(); }

bool prb_settings_given(const char *key)
{
    int index = prb_setting_find(key);
    prb_settings_lock();
    bool given = index >= 0 && values[index].set;
    prb_settings_unlock();
    return given;
}

bool prb_settings_refused(const char *key)
{
    int index = prb_setting_find(key);
    prb_settings_lock();
    bool is = index >= 0 && refused[index];
    prb_settings_unlock();
    return is;
}

const char *prb_settings_key(size_t index) { return prb_setting_at(index)->key; }

void prb_settings_reset(void)
{
    prb_settings_lock();
    for (size_t i = 0; i < prb_setting_count(); i++)
        values[i].set = refused[i] = false;
    prb_settings_unlock();
}

void prb_settings_on_change(void (*changed)(void))
{
    prb_settings_lock();
    on_change = changed;
    prb_settings_unlock();
}

/* What a setting that nobody gave is while another one has a text. */
static const struct {
    const char *key, *by, *value;
} implied[] = {
    {"probing.torch.profiling", "probing.torch.exprs", "on"},
};

static const char *unless_given(int index)
{
    const char *key = prb_setting_at(index)->key;
    for (size_t i = 0; i < sizeof implied / sizeof *implied; i++) {
        int by = strcmp(implied[i].key, key) == 0 ? prb_setting_find(implied[i].by) : -1;
        prb_settings_lock();
        bool has = by >= 0 && values[by].set && values[by].text[0];
        prb_settings_unlock();
        if (has)
            return implied[i].value;
    }
    return prb_setting_at(index)->fallback;
}

static void current(int index, struct prb_setting_value *out)
{
    prb_settings_lock();
    *out = values[index];
    prb_settings_unlock();
    if (!out->set)
        prb_setting_read(index, unless_given(index), out, NULL);
}

int prb_settings_get(const char *key, char *out, size_t cap)
{
    int index = prb_setting_find(key);
    if (index < 0)
        return -1;
    struct prb_setting_value value;
    char text[PRB_SETTING_TEXT_MAX];
    current(index, &value);
    prb_setting_text(index, &value, text, sizeof text);
    snprintf(out, cap, "%s", text);
    return (int)strlen(text);
}

double prb_settings_number(const char *key, double fallback)
{
    int index = prb_setting_find(key);
    if (index < 0 || prb_setting_is_text(prb_setting_at((size_t)index)))
        return fallback;
    struct prb_setting_value value;
    current(index, &value);
    return value.number;
}

bool prb_settings_set(const char *key, const char *text, struct prb_error *err)
{
    int index = prb_setting_find(key);
    struct prb_setting_value value = {0};
    if (index < 0)
        return prb_setting_unknown(key, err);
    if (!prb_setting_read(index, text, &value, err))
        return false;
    prb_settings_lock();
    values[index] = value;
    refused[index] = false;
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
    struct prb_setting_value value = {0};
    int index = prb_setting_find(key);
    if (index < 0)
        return prb_setting_unknown(key, err);
    return apply ? prb_settings_set(key, text, err) : prb_setting_read(index, text, &value, err);
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

/* The setting that a name of the environment stands for; -1: none. */
static int variable_index(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof older / sizeof *older; i++)
        if (strlen(older[i].name) == len && !strncmp(older[i].name, name, len))
            return prb_setting_find(older[i].key);
    for (int i = 0; i < (int)prb_setting_count(); i++)
        if (names_key(name, len, prb_setting_at(i)->key))
            return i;
    return -1;
}

bool prb_settings_set_variable(const char *variable, struct prb_error *err)
{
    const char *equals = strchr(variable, '=');
    if (!equals || strncmp(variable, "PROB", 4))
        return true;
    int index = variable_index(variable, (size_t)(equals - variable));
    if (index < 0 || prb_settings_set(prb_setting_at(index)->key, equals + 1, err))
        return true;
    prb_settings_lock();
    refused[index] = !values[index].set;
    prb_settings_unlock();
    return false;
}

void prb_settings_describe(size_t index, struct prb_buf *out)
{
    struct prb_setting_value value;
    char text[PRB_SETTING_TEXT_MAX];
    current((int)index, &value);
    prb_setting_text((int)index, &value, text, sizeof text);
    prb_buf_addf(out, "%s\t%s\t%s\t%s\t%s", prb_setting_at(index)->key, text,
                 prb_setting_at(index)->fallback, prb_setting_at(index)->unit,
                 prb_setting_at(index)->doc);
}
