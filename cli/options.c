/* Option tables against the words of the command line: see options.h.  Knows no command. */
#include "cli/options.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define WORD_MAX 40 /* longer words are not names with a slip */
#define NAMES_MAX (2 * PRB_OPTIONS_MAX)

static bool takes_argument(const struct prb_option *option) { return option->argument != NULL; }
static bool may_omit(const struct prb_option *option) { return option->argument[0] == '['; }

bool prb_word_in(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == len && strncmp(at, word, n) == 0)
            return true;
        at += n;
    }
    return false;
}

static bool store(struct prb_scan *scan, const struct prb_option_set *set,
                  const struct prb_option *option, const char *text, struct prb_error *err)
{
    if (text && text == scan->unfinished) {
        scan->wanted = option;
        return true;
    }
    char all[PRB_LISTED];
    if (text && option->choices && !prb_word_in(option->choices, text))
        return prb_cli_fail(err, PRB_USAGE, "", "--%s: \"%.40s\" is not one of: %s", option->name,
                            text, prb_listed(option->choices, all));
    struct prb_option_value *value = &set->values[option - set->options];
    if (text && value->count == PRB_REPEATS_MAX)
        return prb_cli_fail(err, PRB_USAGE, "", "--%s can be given %d times at most", option->name,
                            PRB_REPEATS_MAX);
    if (text)
        value->texts[value->count] = text;
    value->count++;
    value->text = text;
    return true;
}

static bool wrong_option(const struct prb_scan *scan, const char *name, size_t len,
                         struct prb_error *err)
{
    const char *names[NAMES_MAX];
    char word[WORD_MAX + 1];
    size_t count = 0;
    for (size_t s = 0; s < scan->set_count; s++)
        for (const struct prb_option *o = scan->sets[s].options; o && o->name && count < NAMES_MAX;
             o++)
            names[count++] = o->name;
    snprintf(word, sizeof word, "%.*s", (int)(len < WORD_MAX ? len : WORD_MAX), name);
    const char *near = prb_nearest(word, names, count);
    char remedy[120] = "";
    if (near)
        snprintf(remedy, sizeof remedy, "did you mean --%s?", near);
    return prb_cli_fail(err, PRB_USAGE, remedy, "unknown option --%.*s", (int)len, name);
}

/* Of a command that has --json and no formats: "-f json", "--format json" are the same. */
static const struct prb_option *find_json(const struct prb_scan *scan,
                                          const struct prb_option_set **set_out)
{
    const struct prb_option *found = NULL;
    for (size_t s = 0; s < scan->set_count; s++)
        for (const struct prb_option *o = scan->sets[s].options; o && o->name; o++) {
            if (strcmp(o->name, "format") == 0)
                return NULL;
            if (strcmp(o->name, "json") == 0 && !o->argument) {
                *set_out = &scan->sets[s];
                found = o;
            }
        }
    return found;
}

/* text: behind the option's name or letter; NULL: the next word.  False with err. */
static bool take_json(struct prb_scan *scan, const struct prb_option_set *set,
                      const struct prb_option *json, const char *text, struct prb_error *err)
{
    if (!text && *scan->words)
        text = *scan->words++;
    if (!text || strcmp(text, "json") != 0)
        return prb_cli_fail(err, PRB_USAGE, "", "--format is json here, the same as --json");
    return store(scan, set, json, NULL, err);
}

/* Exact name, or its unique beginning.  NULL with err. */
static const struct prb_option *find_long(const struct prb_scan *scan, const char *name, size_t len,
                                          const struct prb_option_set **set_out,
                                          struct prb_error *err)
{
    const struct prb_option *found = NULL;
    size_t matches = 0;
    for (size_t s = 0; s < scan->set_count; s++) {
        for (const struct prb_option *o = scan->sets[s].options; o && o->name; o++) {
            if (strncmp(o->name, name, len) != 0)
                continue;
            bool exact = o->name[len] == '\0';
            if (exact || ++matches == 1) {
                found = o;
                *set_out = &scan->sets[s];
            }
            if (exact)
                return found;
        }
    }
    if (matches == 1 && len > 0)
        return found;
    wrong_option(scan, name, len, err);
    return NULL;
}

static bool long_option(struct prb_scan *scan, const char *word, struct prb_error *err)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct prb_option_set *set = NULL;
    const struct prb_option *json =
        len == strlen("format") && strncmp(name, "format", len) == 0 ? find_json(scan, &set) : NULL;
    if (json)
        return take_json(scan, set, json, equals ? equals + 1 : NULL, err);
    const struct prb_option *option = find_long(scan, name, len, &set, err);
    if (!option)
        return false;
    const char *text = equals ? equals + 1 : NULL;
    if (text && !takes_argument(option))
        return prb_cli_fail(err, PRB_USAGE, "", "--%s takes no argument", option->name);
    if (!text && takes_argument(option) && !may_omit(option)) {
        if (!*scan->words)
            return prb_cli_fail(err, PRB_USAGE, "", "--%s needs an argument: %s", option->name,
                                option->argument);
        text = *scan->words++;
    }
    return store(scan, set, option, text, err);
}

static const struct prb_option *find_letter(const struct prb_scan *scan, char letter,
                                            const struct prb_option_set **set_out)
{
    for (size_t s = 0; s < scan->set_count; s++) {
        for (const struct prb_option *o = scan->sets[s].options; o && o->name; o++) {
            *set_out = &scan->sets[s];
            if (o->letter == letter)
                return o;
        }
    }
    return NULL;
}

/* "-abc", where the first that takes an argument takes the rest, or the next word. */
static bool short_options(struct prb_scan *scan, const char *word, struct prb_error *err)
{
    for (const char *at = word + 1; *at; at++) {
        const struct prb_option_set *set = NULL;
        const struct prb_option *option = find_letter(scan, *at, &set);
        const struct prb_option *json = !option && *at == 'f' ? find_json(scan, &set) : NULL;
        if (json)
            return take_json(scan, set, json, at[1] ? at + 1 : NULL, err);
        if (!option)
            return prb_cli_fail(err, PRB_USAGE, "", "unknown option -%c",
                                isprint((unsigned char)*at) ? *at : '?');
        const char *text = NULL;
        if (takes_argument(option) && !may_omit(option)) {
            text = at[1] ? at + 1 : *scan->words;
            if (!text)
                return prb_cli_fail(err, PRB_USAGE, "", "-%c needs an argument: %s", *at,
                                    option->argument);
            if (!at[1])
                scan->words++;
        }
        if (!store(scan, set, option, text, err))
            return false;
        if (text)
            return true;
    }
    return true;
}

const char *prb_scan_next(struct prb_scan *scan, bool *ok, struct prb_error *err)
{
    *ok = true;
    while (*scan->words) {
        const char *word = *scan->words++;
        if (scan->ended || word == scan->unfinished || word[0] != '-' || word[1] == '\0')
            return word;
        if (strcmp(word, "--") == 0)
            scan->ended = true;
        else if (!(word[1] == '-' ? long_option(scan, word, err)
                                  : short_options(scan, word, err))) {
            *ok = false;
            return NULL;
        }
    }
    return NULL;
}

bool prb_run_number(const struct prb_run *run, int option, double least, double most, double *out,
                    struct prb_error *err)
{
    const struct prb_option *given = &run->command->options[option];
    const char *text = run->options[option].text;
    if (!text)
        return true;
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < least || value > most)
        return prb_usage(run, err, "--%s%c%s: must be a number%s from %g to %g", given->name,
                         may_omit(given) ? '=' : ' ', text,
                         strstr(given->argument, "SECONDS") ? " of seconds" : "", least, most);
    *out = value;
    return true;
}
