/* The spec of torch tracing: see spec.h. */
#include "inject/probe/torch/spec.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "inject/probe/setting_value.h"
#include "probing.h"
#include "training/watched.h"

#define SHOWN 60 /* bytes of a text in a message */

struct piece {
    const char *at;
    size_t len;
};

static struct piece trimmed(const char *at, size_t len)
{
    for (; len && strchr(" \t\r\n", *at); at++)
        len--;
    while (len && strchr(" \t\r\n", at[len - 1]))
        len--;
    return (struct piece){at, len};
}

static int shown(struct piece piece) { return (int)(piece.len < SHOWN ? piece.len : SHOWN); }

/* ---- values ---- */

static bool to_number(struct piece text, enum prb_setting_type type, double *out)
{
    char copy[32];
    if (!text.len || text.len >= sizeof copy)
        return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return prb_value_parse(type, "", copy, out);
}

static bool to_switch(struct piece text, bool *out)
{
    double number;
    if (!to_number(text, PRB_SETTING_SWITCH, &number))
        return false;
    *out = number != 0;
    return true;
}

static bool is_word(struct piece text, const char *word)
{
    return text.len == strlen(word) && !strncasecmp(text.at, word, text.len);
}

static bool to_ratio(struct piece text, double *out)
{
    double number;
    if (!to_number(text, PRB_SETTING_REAL, &number) || number > 1)
        return false;
    *out = number;
    return true;
}

static bool to_mode(struct piece text, bool *random)
{
    if (!is_word(text, "random") && !is_word(text, "ordered"))
        return false;
    *random = is_word(text, "random");
    return true;
}

static bool to_choice(struct piece text, enum prb_torch_choice *out)
{
    bool on;
    if (is_word(text, "auto")) {
        *out = PRB_TORCH_AUTO;
        return true;
    }
    if (!to_switch(text, &on))
        return false;
    *out = on ? PRB_TORCH_ON : PRB_TORCH_OFF;
    return true;
}

static bool to_count(struct piece text, int most, int *out)
{
    double number;
    if (!to_number(text, PRB_SETTING_INTEGER, &number) || number > most)
        return false;
    *out = (int)number;
    return true;
}

static bool to_depth(struct piece text, struct prb_torch_spec *out)
{
    return to_count(text, PRB_TORCH_DEPTH_MAX, &out->depth);
}

/* N:M, N steps as they are and M without tracing. */
static bool to_shadow(struct piece text, struct prb_torch_spec *out)
{
    const char *colon = memchr(text.at, ':', text.len);
    if (!colon) {
        out->shadow_normal = out->shadow_steps = 0;
        return is_word(text, "off") || is_word(text, "0");
    }
    struct piece normal = {text.at, (size_t)(colon - text.at)};
    struct piece steps = {colon + 1, text.len - normal.len - 1};
    return to_count(normal, PRB_TORCH_SHADOW_MAX, &out->shadow_normal) &&
           to_count(steps, PRB_TORCH_SHADOW_MAX, &out->shadow_steps) && out->shadow_normal &&
           out->shadow_steps;
}

static bool set_enabled(struct piece text, struct prb_torch_spec *out)
{
    return to_switch(text, &out->enabled);
}
static bool set_mode(struct piece text, struct prb_torch_spec *out)
{
    return to_mode(text, &out->random);
}
static bool set_rate(struct piece text, struct prb_torch_spec *out)
{
    return to_ratio(text, &out->rate);
}
static bool set_layer_rate(struct piece text, struct prb_torch_spec *out)
{
    return to_ratio(text, &out->layer_rate);
}
static bool set_backward(struct piece text, struct prb_torch_spec *out)
{
    return to_switch(text, &out->backward);
}
static bool set_trace_spans(struct piece text, struct prb_torch_spec *out)
{
    return to_switch(text, &out->trace_spans);
}
static bool set_adaptive(struct piece text, struct prb_torch_spec *out)
{
    return to_choice(text, &out->adaptive);
}

static bool set_gpu(struct piece text, struct prb_torch_spec *out)
{
    return to_choice(text, &out->gpu);
}

/* ---- keys ---- */

#define SWITCH "on or off"
#define CHOICE "on, off or auto"
#define RATIO "a number from 0 to 1"
/* A key without a function takes variables, exprs; or it can only be off. */
static const struct {
    const char *name;
    bool (*set)(struct piece text, struct prb_torch_spec *out);
    const char *wanted, *only_off;
} keys[] = {
    {"enabled", set_enabled, SWITCH, NULL},
    {"mode", set_mode, "random or ordered", NULL},
    {"rate", set_rate, RATIO, NULL},
    {"layer_rate", set_layer_rate, RATIO, NULL},
    {"tracepy", NULL, CHOICE,
     "each call of a Python function would be slower, not only what trains: `profile` samples "
     "them"},
    {"sync", NULL, CHOICE,
     "the program would wait for its GPU at each module, and its times would be those of another"},
    {"backward", set_backward, SWITCH, NULL},
    {"trace_spans", set_trace_spans, SWITCH, NULL},
    {"exprs", NULL, NULL, NULL},
    {"vars", NULL, NULL, NULL},
    {"watch", NULL, NULL, NULL},
    {"shadow", to_shadow, "off, or N:M from 1:1 to 1000:1000", NULL},
    {"adaptive", set_adaptive, CHOICE, NULL},
    {"depth", to_depth, "a whole number from 0 (all) to 100", NULL},
    {"gpu", set_gpu, CHOICE, NULL},
};
enum { KEYS = sizeof keys / sizeof *keys };

static bool unknown_key(struct piece key, struct prb_error *err)
{
    const char *names[KEYS];
    char name[64];
    PRB_AUTO(prb_buf) struct prb_buf all = {0};
    for (int i = 0; i < KEYS; i++) {
        names[i] = keys[i].name;
        prb_buf_addf(&all, "%s%s", i ? ", " : "", keys[i].name);
    }
    snprintf(name, sizeof name, "%.*s", shown(key), key.at);
    const char *near = prb_nearest(name, names, KEYS);
    prb_fail(err, PRB_USAGE, "the spec of torch tracing has no key \"%s\"", name);
    return near ? prb_error_remedy(err, "did you mean %s?", near)
                : prb_error_remedy(err, "its keys: %s", prb_buf_ok(&all) ? all.data : "");
}

static bool bad_value(const char *key, const char *wanted, struct piece value,
                      struct prb_error *err)
{
    return prb_fail(err, PRB_USAGE, "%s in the spec of torch tracing must be %s, not \"%.*s\"", key,
                    wanted, shown(value), value.at);
}

static bool stays_off(struct piece value, const char *key, const char *wanted, const char *why,
                      struct prb_error *err)
{
    enum prb_torch_choice choice;
    if (!to_choice(value, &choice))
        return bad_value(key, wanted, value, err);
    if (choice != PRB_TORCH_ON)
        return true;
    prb_fail(err, PRB_USAGE, "%s=on in the spec of torch tracing is not done: %s", key, why);
    return prb_error_remedy(err, "leave %s out", key);
}

/* One more variable, checked. */
static bool add_expr(struct piece item, const char *key, struct prb_torch_spec *out,
                     struct prb_error *err)
{
    struct prb_watched watched;
    struct prb_error why = {0};
    size_t have = strlen(out->exprs), count = 0;
    if (!prb_watched_parse_item(item.at, item.len, &watched, &why)) {
        prb_fail(err, PRB_USAGE, "%s in the spec of torch tracing: %s", key, why.text);
        return prb_error_remedy(err, "%s", why.remedy);
    }
    for (const char *at = out->exprs; *at; at += at[prb_watched_item(at)] == ',')
        at += prb_watched_item(at), count++;
    if (count == PRB_WATCHED_MAX || have + item.len + 2 > sizeof out->exprs)
        return prb_fail(err, PRB_USAGE, "%s in the spec of torch tracing: at most %d variables",
                        key, PRB_WATCHED_MAX);
    snprintf(out->exprs + have, sizeof out->exprs - have, "%s%.*s", have ? "," : "", (int)item.len,
             item.at);
    return true;
}

/* '=' outside of brackets: out["a=b"]@train has none. */
static const char *equals_of(struct piece item)
{
    for (size_t i = 0; i < item.len && item.at[i] != '['; i++)
        if (item.at[i] == '=')
            return &item.at[i];
    return NULL;
}

/* [mode:]rate[:layer_rate], or a switch. */
static bool read_first(struct piece item, struct prb_torch_spec *out, struct prb_error *err)
{
    if (to_switch(item, &out->enabled))
        return true;
    struct piece rest = item;
    const char *colon = memchr(rest.at, ':', rest.len);
    if (colon && to_mode((struct piece){rest.at, (size_t)(colon - rest.at)}, &out->random)) {
        rest.len -= (size_t)(colon + 1 - rest.at);
        rest.at = colon + 1;
        colon = memchr(rest.at, ':', rest.len);
    }
    size_t len = colon ? (size_t)(colon - rest.at) : rest.len;
    if (to_ratio((struct piece){rest.at, len}, &out->rate) &&
        (!colon || to_ratio((struct piece){colon + 1, rest.len - len - 1}, &out->layer_rate)))
        return true;
    prb_fail(err, PRB_USAGE, "the spec of torch tracing has no \"%.*s\"", shown(item), item.at);
    return prb_error_remedy(err,
                            "it begins with on, off or [MODE:]RATE[:LAYER_RATE], then KEY=VALUE");
}

static bool read_item(struct piece item, bool first, struct prb_torch_spec *out,
                      struct prb_error *err)
{
    const char *equals = equals_of(item);
    if (!equals && memchr(item.at, '@', item.len))
        return add_expr(item, "exprs", out, err);
    if (!equals && first)
        return read_first(item, out, err);
    struct piece key = trimmed(item.at, equals ? (size_t)(equals - item.at) : item.len);
    struct piece value = equals ? trimmed(equals + 1, item.len - (size_t)(equals + 1 - item.at))
                                : (struct piece){key.at + key.len, 0};
    for (int i = 0; i < KEYS; i++) {
        if (!is_word(key, keys[i].name))
            continue;
        if (keys[i].only_off)
            return stays_off(value, keys[i].name, keys[i].wanted, keys[i].only_off, err);
        if (!keys[i].set)
            return add_expr(value, keys[i].name, out, err);
        return keys[i].set(value, out) || bad_value(keys[i].name, keys[i].wanted, value, err);
    }
    return unknown_key(key, err);
}

static void begin(struct prb_torch_spec *out)
{
    *out =
        (struct prb_torch_spec){.rate = -1, .layer_rate = 1, .backward = true, .trace_spans = true};
}

/* Items at commas; an empty one between two is ignored. */
static bool each_item(const char *text, bool only_exprs, struct prb_torch_spec *out,
                      struct prb_error *err)
{
    bool first = true;
    while (*text) {
        size_t len = prb_watched_item(text);
        struct piece item = trimmed(text, len);
        text += len + (text[len] == ',');
        if (!item.len)
            continue;
        if (!(only_exprs ? add_expr(item, "exprs", out, err) : read_item(item, first, out, err)))
            return false;
        first = false;
    }
    return true;
}

bool prb_torch_spec_parse(const char *text, struct prb_torch_spec *out, struct prb_error *err)
{
    begin(out);
    out->enabled = text[strspn(text, " \t\r\n,")] != '\0';
    return each_item(text, false, out, err);
}

bool prb_torch_spec_both(const char *profiling, const char *exprs, struct prb_torch_spec *out,
                         struct prb_error *err)
{
    if (!prb_torch_spec_parse(profiling, out, err) || !each_item(exprs, true, out, err))
        return false;
    if (!profiling[strspn(profiling, " \t\r\n,")] && out->exprs[0])
        out->enabled = true;
    return true;
}

bool prb_torch_spec_check(const char *text, struct prb_error *err)
{
    struct prb_torch_spec spec;
    return prb_torch_spec_parse(text, &spec, err);
}

bool prb_torch_exprs_check(const char *text, struct prb_error *err)
{
    struct prb_torch_spec spec;
    return prb_torch_spec_both("", text, &spec, err);
}
