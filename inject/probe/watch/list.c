/* What is watched, with the names as the interpreter has them. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "inject/probe/watch/watch.h"

#define LAYOUT (&prb_watch_facts.layout)

static const struct prb_watch_reader direct = {.direct = true};

/* Read along, for training_logs: the first that there is is the epoch. */
static const char *const epochs[] = {
    "epoch",
    "self.state.epoch",                                        /* transformers' Trainer */
    "self._trainer.fit_loop.epoch_progress.current.processed", /* Lightning */
};

static bool intern(const char *text, struct prb_py **out)
{
    *out = prb_watch_facts.intern(text);
    return *out != NULL;
}

/* The function of a variable among the list's; -1: out of memory. */
static int add_function(struct prb_watch_list *list, const struct prb_watched *watched)
{
    for (unsigned i = 0; i < list->function_count; i++)
        if (strcmp(list->functions[i].name, watched->function) == 0 &&
            strcmp(list->functions[i].module, watched->module) == 0)
            return (int)i;
    struct prb_watch_function *function = &list->functions[list->function_count];
    const char *dot = strrchr(watched->function, '.');
    *function = (struct prb_watch_function){.dotted = dot != NULL};
    memcpy(function->name, watched->function, sizeof function->name);
    memcpy(function->module, watched->module, sizeof function->module);
    if (watched->function[0] && !intern(dot ? dot + 1 : watched->function, &function->last))
        return -1;
    const char *last = dot ? function->name + (dot + 1 - watched->function) : function->name;
    function->text = *last == '<' ? last : NULL;
    return (int)list->function_count++;
}

static bool add_variable(struct prb_watch_list *list, const struct prb_watched *watched, bool asked)
{
    if (list->variable_count == PRB_WATCH_VARIABLES_MAX)
        return true;
    struct prb_watch_variable *variable = &list->variables[list->variable_count];
    *variable = (struct prb_watch_variable){.asked = asked, .step_count = watched->step_count};
    memcpy(variable->text, watched->text, sizeof variable->text);
    int function = add_function(list, watched);
    if (function < 0 || !intern(watched->name, &variable->name))
        return false;
    list->variable_count++; /* from here on drop() has its names */
    variable->function = (unsigned)function;
    for (size_t i = 0; i < watched->step_count; i++) {
        variable->steps[i].is_attribute = watched->steps[i].is_attribute;
        variable->steps[i].is_index = watched->steps[i].is_index;
        variable->steps[i].index = watched->steps[i].index;
        variable->steps[i].at = watched->steps[i].at;
        if (!watched->steps[i].is_index && !intern(watched->steps[i].key, &variable->steps[i].key))
            return false;
    }
    return true;
}

static bool is_watched(const struct prb_watch_list *list, unsigned function, const char *text)
{
    for (unsigned i = 0; i < list->variable_count; i++)
        if (list->variables[i].function == function && strcmp(list->variables[i].text, text) == 0)
            return true;
    return false;
}

static bool add_epochs(struct prb_watch_list *list)
{
    for (unsigned f = 0; f < list->function_count; f++)
        for (size_t i = 0; i < sizeof epochs / sizeof *epochs; i++) {
            struct prb_watched watched;
            char item[PRB_WATCHED_TEXT_MAX + 80];
            snprintf(item, sizeof item, "%s@%s%s%s", epochs[i], list->functions[f].module,
                     list->functions[f].module[0] ? ":" : "", list->functions[f].name);
            if (is_watched(list, f, epochs[i]) ||
                !prb_watched_parse_item(item, strlen(item), &watched, NULL))
                continue;
            if (!add_variable(list, &watched, false))
                return false;
        }
    return true;
}

static bool add_step(struct prb_watch_list *list, const char *function)
{
    struct prb_watched watched;
    char item[PRB_WATCHED_TEXT_MAX + 8];
    snprintf(item, sizeof item, "step@%s", function);
    if (!*function || !prb_watched_parse_item(item, strlen(item), &watched, NULL))
        return true;
    int index = add_function(list, &watched);
    if (index >= 0)
        list->functions[index].ends_step = true;
    return index >= 0;
}

bool prb_watch_list_make(const struct prb_py_api *py, const char *exprs, const char *step,
                         struct prb_watch_list *out, struct prb_error *err)
{
    struct prb_watched watched;
    *out = (struct prb_watch_list){0};
    for (const char *at = exprs; *at;) {
        size_t len = prb_watched_item(at);
        if (!prb_watched_parse_item(at, len, &watched, err))
            return false;
        if (!add_variable(out, &watched, true))
            break;
        at += len + (at[len] == ',');
    }
    if (add_epochs(out) && add_step(out, step))
        return true;
    py->PyErr_Clear();
    return prb_nomem(err);
}

void prb_watch_list_drop(struct prb_watch_list *list)
{
    for (unsigned i = 0; i < list->function_count; i++)
        prb_py_drop(list->functions[i].last);
    for (unsigned i = 0; i < list->variable_count; i++) {
        prb_py_drop(list->variables[i].name);
        for (size_t s = 0; s < list->variables[i].step_count; s++)
            prb_py_drop(list->variables[i].steps[s].key);
    }
    *list = (struct prb_watch_list){0};
}

/* ---- which code ---- */

static bool has_text(const char *code, enum prb_field field, const char *want, bool file)
{
    char text[PRB_WATCH_TEXT_MAX + 1];
    uint64_t at;
    if (!prb_watch_field(&direct, code, field, &at))
        return false;
    size_t len = prb_watch_str(&direct, (const char *)(uintptr_t)at, text, sizeof text - 1);
    text[len] = '\0';
    if (!file)
        return strcmp(text, want) == 0;
    const char *base = prb_base_name(text);
    size_t wanted = strlen(want);
    return strncmp(base, want, wanted) == 0 && (!base[wanted] || base[wanted] == '.');
}

bool prb_watch_is_named(const char *name, const char *text)
{
    char have[PRB_WATCHED_TEXT_MAX];
    uint64_t length;
    size_t want = strlen(text);
    return PRB_WATCH_FIELD(&direct, name, str, length, &length) && length == want &&
           prb_watch_str(&direct, name, have, sizeof have) == want && !memcmp(have, text, want);
}

bool prb_watch_is(const struct prb_watch_function *function, const char *code)
{
    uint64_t name;
    if (!function->last || !PRB_WATCH_FIELD(&direct, code, code, name, &name) ||
        ((const char *)(uintptr_t)name != (const char *)function->last &&
         (!function->text || !prb_watch_is_named((const char *)(uintptr_t)name, function->text))))
        return false;
    return (!function->dotted || has_text(code, PRB_F_code_qualname, function->name, false)) &&
           (!function->module[0] || has_text(code, PRB_F_code_filename, function->module, true));
}
