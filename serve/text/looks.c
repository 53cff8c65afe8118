/* The table, and the check: what is not in it cannot be said. */
#include "serve/text/looks.h"

#include <string.h>

#include "probing.h"
#include "serve/doors/life.h"

#define MANY " --ranks --subprocesses -s"

const struct prb_look prb_looks[] = {
    {"list", "list", "--tree -t --json -j", false, PRB_LOOK_NONE, "the Python processes"},
    {"bt", "backtrace",
     "--native --locals -l --group -g --all-interpreters -a --json -j --source-lines --async "
     "--thread=" MANY,
     true, PRB_LOOK_THREAD, "stacks of all threads, or of one: bt [TID] [--native] [--locals]"},
    {"backtrace", "backtrace",
     "--native --locals -l --group -g --all-interpreters -a --json -j --source-lines --async "
     "--thread=" MANY,
     true, PRB_LOOK_THREAD, NULL},
    {"tasks", "tasks", "--tree --json -j" MANY, true, PRB_LOOK_NONE,
     "asyncio tasks and what they wait for"},
    {"query", "query", "--format=" MANY, true, PRB_LOOK_SQL, "rows: query SELECT …"},
    {"tables", "tables", "--format=", true, PRB_LOOK_NAMES, "the tables there are"},
    {"inspect", "inspect", "--format=", true, PRB_LOOK_NAMES,
     "modules, tensors, objects, threads or imports: inspect tensors"},
    {"memory", "memory", "--format=" MANY, true, PRB_LOOK_NONE, "how much memory it has"},
    {"config", "config", "--json -j", true, PRB_LOOK_NAMES, "settings of its probe: config [KEY]"},
    {"profile", "profile",
     "--native -n --idle -i --gil -g --rate= --format= --mode= --threads --async --function "
     "--nolineno --full-filenames --inverted --duration= --group=" MANY,
     true, PRB_LOOK_SECONDS, "where the time goes, as collapsed stacks: profile SECONDS"},
    {"export", "export", "--json --format=perfetto --format=chrome --last= --duration=" MANY, true,
     PRB_LOOK_NONE, "the steps that it recorded, as a timeline: export --last=20"},
    {"skill", "skill", "--json -j --seconds= --tables", true, PRB_LOOK_SKILL,
     "what is wrong with it: skill run [NAME]"},
    {"crashes", "crash", "--all -a", false, PRB_LOOK_NONE, "crash dumps"},
    {0},
};

const struct prb_look *prb_look_named(const char *word, size_t len)
{
    for (const struct prb_look *look = prb_looks; look->word; look++)
        if (strlen(look->word) == len && strncmp(look->word, word, len) == 0)
            return look;
    return NULL;
}

/* As it stands in the list, or with a value where "--name=" does. */
static bool is_allowed(const char *options, const char *word)
{
    size_t len = strlen(word), name = strcspn(word, "=");
    name += word[name] == '=';
    for (const char *at = options; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        bool valued = at[n - 1] == '=';
        if (n == (valued ? name : len) && strncmp(at, word, n) == 0 && (!valued || word[n]))
            return true;
        at += n;
    }
    return false;
}

static bool is_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits &&
           (!text[digits] ||
            (text[digits] == '.' && !text[digits + 1 + strspn(text + digits + 1, "0123456789")]));
}

/* Of settings, tables, kinds of objects: nothing that could be a path, or change something. */
static bool is_name(const char *text)
{
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_.")] == '\0';
}

static bool is_argument(const struct prb_look *look, const char *word, size_t before)
{
    switch (look->argument) {
    case PRB_LOOK_THREAD:
    case PRB_LOOK_SECONDS:
        return before == 0 && is_number(word);
    case PRB_LOOK_SQL:
        return before == 0 && *word;
    case PRB_LOOK_NAMES:
        return before < 2 && is_name(word);
    case PRB_LOOK_SKILL:
        return before == 0 ? strcmp(word, "run") == 0 || strcmp(word, "list") == 0 ||
                                 strcmp(word, "show") == 0
                           : before == 1 && is_name(word);
    case PRB_LOOK_NONE:
        break;
    }
    return false;
}

/* Where files would be written, standard output takes them. */
static void add_fixed(const struct prb_look *look, bool formatted, const char **words,
                      size_t *count)
{
    bool profile = look->argument == PRB_LOOK_SECONDS;
    if (profile && !formatted)
        words[(*count)++] = "--format=collapsed";
    if (profile || strcmp(look->name, "export") == 0)
        words[(*count)++] = "--output=-";
    if (strcmp(look->name, "crash") == 0)
        words[(*count)++] = "list";
}

bool prb_look_take(const struct prb_look *look, const char *const *given, size_t count,
                   const char **words, size_t *word_count)
{
    const char *arguments[PRB_LOOK_WORDS];
    size_t argument_count = 0;
    bool ended = false, lasts = false, formatted = false;
    if (*word_count + count + 6 > PRB_LOOK_WORDS)
        return false;
    words[(*word_count)++] = look->name;
    for (size_t i = 0; i < count; i++) {
        const char *word = given[i];
        if (ended || *word != '-' || !word[1]) {
            if (!is_argument(look, word, argument_count))
                return false;
            arguments[argument_count++] = word;
        } else if (strcmp(word, "--") == 0) {
            ended = true;
        } else if (is_allowed(look->options, word)) {
            lasts = lasts || strncmp(word, "--duration=", 11) == 0;
            formatted = formatted || strncmp(word, "--format=", 9) == 0;
            words[(*word_count)++] = word;
        } else {
            return false;
        }
    }
    add_fixed(look, formatted, words, word_count);
    if (look->argument == PRB_LOOK_SECONDS) {
        if (argument_count + lasts != 1)
            return false;
        if (argument_count)
            words[(*word_count)++] = "--duration";
    } else if (argument_count) {
        words[(*word_count)++] = "--";
    }
    for (size_t i = 0; i < argument_count; i++)
        words[(*word_count)++] = arguments[i];
    return look->argument != PRB_LOOK_SQL || argument_count == 1;
}

/* ---- a server for some processes ---- */

static bool has_all_ranks(const struct prb_serve *serve, pid_t pid, struct prb_error *err)
{
    struct prb_process_list *list = prb_process_list(err);
    PRB_AUTO_FREE bool *chosen = list ? calloc(list->count + 1, sizeof *chosen) : NULL;
    bool ok = chosen || (list && prb_nomem(err));
    if (chosen)
        prb_process_choose(list, pid, true, false, chosen);
    for (size_t i = 0; chosen && ok && i < list->count; i++)
        ok = !chosen[i] || prb_serve_check_has(serve, list->items[i].pid, err);
    if (list)
        prb_process_list_free(list);
    return ok;
}

bool prb_look_bind(const struct prb_serve *serve, const struct prb_look *look, pid_t pid,
                   const char **words, size_t *count, char room[PRB_LOOK_ROOM],
                   struct prb_error *err)
{
    size_t len = (size_t)snprintf(room, PRB_LOOK_ROOM, "--below=");
    if (!prb_serve_pids(serve, room + len, PRB_LOOK_ROOM - len))
        return true;
    if (strcmp(look->name, "list") == 0 && room[len]) {
        words[(*count)++] = room;
        return true;
    }
    for (size_t i = 0; i < *count && strcmp(words[i], "--") != 0; i++)
        if (strcmp(words[i], "--ranks") == 0)
            return has_all_ranks(serve, pid, err);
    return true;
}
