/* What the last word of an unfinished command line may become: candidates.h.
 *
 * The name of a placeholder decides: "FILE" of an option, "[THREAD]" of a command.  To add one: its
 * line in kinds, below, and a function if it is of a new kind. */
#include "cli/help/candidates.h"

#include <string.h>

#include "cli/options.h"
#include "cli/print/out.h"
#include "cli/probe/probe.h"

#define PLACEHOLDER_MAX 16

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)
PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)

/* The command line so far, and what has been found for its last word. */
struct line {
    struct prb_run run;
    struct prb_error failed; /* why something cannot be offered; not shown */
    const char *last;
    const struct prb_option *option; /* the last word is its argument */
    size_t position;                 /* arguments of the command before the last word */
    bool ended;                      /* no option may follow */

    enum prb_shell shell;
    const char *prefix; /* before every candidate: "--format=" */
    size_t prefix_length;
    FILE *out;    /* the candidates */
    size_t begun; /* candidates that begin with the last word */
    bool files, folders, programs, join;
};

/* Names of a target may hold anything: one that could harm a terminal is not offered. */
static void offer(struct line *line, const char *word, const char *text)
{
    PRB_AUTO_FREE char *whole = NULL, *safe = NULL, *explained = NULL;
    if (asprintf(&whole, "%.*s%s", (int)line->prefix_length, line->prefix, word) < 0 ||
        !(safe = prb_text_safe(whole, strlen(whole), 0)) || strcmp(safe, whole) != 0 ||
        !(explained = prb_text_safe(text, strlen(text), 0)))
        return;
    bool begun = strncmp(whole, line->last, strlen(line->last)) == 0;
    line->begun += begun;
    if (line->shell == PRB_SHELL_BASH && begun)
        fprintf(line->out, "%s\n", whole);
    else if (line->shell == PRB_SHELL_FISH)
        fprintf(line->out, "%s\t%s\n", whole, explained);
    if (line->shell != PRB_SHELL_ZSH)
        return;
    for (const char *at = whole; *at; at++)
        fputs(*at == ':' || *at == '\\' ? (char[]){'\\', *at, '\0'} : (char[]){*at, '\0'},
              line->out);
    fprintf(line->out, ":%s\n", explained);
}

static void offer_list(struct line *line, const char *words)
{
    char word[64];
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        offer(line, word, "");
        at += length;
    }
}

/* ---- the kinds of words ---- */

static void offer_files(struct line *line) { line->files = true; }
static void offer_folders(struct line *line) { line->folders = true; }
static void offer_programs(struct line *line) { line->programs = true; }

static void offer_commands(struct line *line)
{
    for (const struct prb_command *const *at = prb_commands; *at; at++)
        offer(line, (*at)->name, (*at)->summary);
}

static void offer_processes(struct line *line)
{
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(&line->failed);
    for (size_t i = 0; list && i < list->count; i++) {
        char pid[16], command[128];
        snprintf(pid, sizeof pid, "%d", (int)list->items[i].pid);
        prb_process_short_command(&list->items[i], 100, command, sizeof command);
        offer(line, pid, command);
    }
}

static void offer_targets(struct line *line)
{
    offer_processes(line);
    line->files = true;
}

/* By name, or by number once a digit was typed. */
static void offer_threads(struct line *line)
{
    if (!prb_run_has_target(&line->run))
        return;
    bool numbers = line->last[line->prefix_length] >= '0' && line->last[line->prefix_length] <= '9';
    PRB_AUTO(prb_target) struct prb_target *target = prb_run_open(&line->run, &line->failed);
    PRB_AUTO(prb_stacks)
    struct prb_stacks *stacks = target ? prb_stacks_take(target, NULL, &line->failed) : NULL;
    for (size_t i = 0; stacks && i < stacks->thread_count; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        char number[32];
        snprintf(number, sizeof number, "%d", (int)thread->os_thread_id);
        if (numbers)
            offer(line, number, thread->name ? thread->name : "");
        else if (thread->name)
            offer(line, thread->name, number);
    }
}

/* A row of SHOW TABLES: schema, name, doc. */
static bool offer_table(void *context, size_t columns, const char *const *names,
                        const struct prb_value *row)
{
    PRB_AUTO_FREE char *name = NULL;
    (void)names;
    if (row && columns == 3 && row[0].text && row[1].text &&
        asprintf(&name, "%s.%s", row[0].text, row[1].text) >= 0)
        offer(context, name, row[2].text ? row[2].text : "");
    return true;
}

static void offer_tables(struct line *line)
{
    PRB_AUTO(prb_target)
    struct prb_target *target =
        prb_run_has_target(&line->run) ? prb_run_open(&line->run, &line->failed) : NULL;
    PRB_AUTO(prb_db) struct prb_db *db = prb_db_open(target, &line->failed);
    if (db && !prb_db_query(db, "SHOW TABLES", offer_table, line, &line->failed))
        return;
}

/* KEY; behind "KEY=" the two values of a switch. */
static void offer_settings(struct line *line)
{
    PRB_AUTO(prb_strings) struct prb_strings list = {0};
    const char *last = line->last + line->prefix_length, *equals = strchr(last, '=');
    bool define = line->option != NULL; /* always KEY=VALUE */
    line->join = !equals;
    line->files = equals && strchr(equals, '/');
    if (!prb_config_defaults(&list, &line->failed))
        return;
    for (size_t i = 0; i < list.count; i++) {
        char *key = list.items[i];
        char *cells[5] = {key, "", "", "", ""}; /* key, value, default, unit, meaning */
        for (size_t c = 1; c < 5 && (cells[c] = strchr(cells[c - 1], '\t')); c++)
            *cells[c]++ = '\0';
        PRB_AUTO_FREE char *on = NULL, *off = NULL;
        bool is_switch = strcmp(cells[1], "on") == 0 || strcmp(cells[1], "off") == 0;
        if (asprintf(&on, "%s=%s", key, equals ? "on" : "") < 0 ||
            asprintf(&off, "%s=off", key) < 0)
            return;
        if (!equals)
            offer(line, define ? on : key, cells[4] ? cells[4] : "");
        else if (is_switch && strlen(key) == (size_t)(equals - last) &&
                 strncmp(last, key, strlen(key)) == 0)
            offer(line, on, ""), offer(line, off, "");
    }
}

static void offer_formats(struct line *line)
{
    const struct prb_command *command = line->run.command;
    struct prb_file_format format;
    for (size_t i = 0; command && command->format && command->format(i, &format); i++)
        offer(line, format.name, format.doc);
}

static const struct kind {
    const char *placeholder;
    void (*offer)(struct line *line);
} kinds[] = {
    {"TARGET", offer_targets},     {"PID", offer_processes},    {"THREAD", offer_threads},
    {"FILE", offer_files},         {"PATH", offer_files},       {"FOLDER", offer_files},
    {"BEFORE", offer_files},       {"AFTER", offer_files},      {"ARGUMENT", offer_files},
    {"DIR", offer_folders},        {"TABLE", offer_tables},     {"KEY", offer_settings},
    {"KEY=VALUE", offer_settings}, {"COMMAND", offer_commands}, {"PROGRAM", offer_programs},
    {"FORMAT", offer_formats},
};

static void offer_kind(struct line *line, const char *placeholder)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].placeholder, placeholder) == 0)
            kinds[i].offer(line);
}

/* ---- the place of the last word ---- */

/* The placeholder of the argument at an index, or "": of "[PROGRAM [ARGUMENT]...]" the second is
 * ARGUMENT, and each one after it. */
static void placeholder_at(const char *arguments, size_t index, char out[PLACEHOLDER_MAX])
{
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    *out = '\0';
    for (const char *at = arguments; *at; at++) {
        size_t length = strspn(at, capitals);
        if (!length)
            continue;
        bool value = at > arguments && at[-1] == '='; /* of KEY[=VALUE] */
        if (!value)
            snprintf(out, PLACEHOLDER_MAX, "%.*s", (int)length, at);
        at += length - 1;
        if (!value && index-- == 0)
            return;
    }
    if (!strstr(arguments, "..."))
        *out = '\0';
}

/* Options that name a target, where one may follow. */
static bool fits_target(const struct line *line, const struct prb_option *global)
{
    const struct prb_command *command = line->run.command;
    ptrdiff_t at = global - prb_global_options;
    if (at > PRB_GLOBAL_STRICT)
        return true;
    return (!command || command->target != PRB_USES_NO_TARGET) &&
           (at > PRB_GLOBAL_NAME || !prb_run_has_target(&line->run));
}

static void offer_options(struct line *line)
{
    const struct prb_command *command = line->run.command;
    const struct prb_option *sets[] = {command ? command->options : NULL, prb_global_options};
    for (size_t s = 0; s < 2; s++) {
        for (const struct prb_option *option = sets[s]; option && option->name; option++) {
            char word[64];
            if (s == 1 && !fits_target(line, option))
                continue;
            snprintf(word, sizeof word, "--%s", option->name);
            offer(line, word, option->help);
            snprintf(word, sizeof word, "-%c", option->letter);
            if (option->letter && !line->last[1] && (s == 0 || !command))
                offer(line, word, option->help);
        }
    }
}

/* The argument of an option: its choices, or by its placeholder. */
static void offer_value(struct line *line)
{
    if (line->option->choices)
        offer_list(line, line->option->choices);
    else if (line->option->argument)
        offer_kind(line, line->option->argument);
}

/* "--format=js" */
static bool offer_joined_value(struct line *line)
{
    const char *equals = strchr(line->last, '=');
    const struct prb_option *sets[] = {line->run.command ? line->run.command->options : NULL,
                                       prb_global_options};
    for (size_t s = 0; equals && s < 2; s++) {
        for (const struct prb_option *option = sets[s]; option && option->name; option++) {
            size_t length = strlen(option->name);
            if (length + 2 != (size_t)(equals - line->last) ||
                strncmp(option->name, line->last + 2, length) != 0)
                continue;
            line->option = option;
            line->prefix = line->last;
            line->prefix_length = length + 3;
            offer_value(line);
            return true;
        }
    }
    return equals;
}

/* As in main.c: the pid may stand behind the command, of one with any number of arguments first. */
static bool may_be_target(const struct line *line)
{
    const struct prb_command *command = line->run.command;
    return command->target >= PRB_USES_TARGET_IF_GIVEN && command != &prb_command_help &&
           !prb_run_has_target(&line->run) &&
           (line->position == 0 || command->arguments_max != PRB_WORDS_MAX);
}

static void offer_argument(struct line *line)
{
    const struct prb_command *command = line->run.command;
    char placeholder[PLACEHOLDER_MAX];
    if (may_be_target(line))
        offer_processes(line);
    if (command->words && line->position == 0)
        offer_list(line, command->words);
    else if (line->position < command->arguments_max) {
        placeholder_at(command->arguments, line->position - (command->words != NULL), placeholder);
        offer_kind(line, placeholder);
    }
}

/* The command or the target, which may be a file. */
static void offer_first(struct line *line)
{
    offer_commands(line);
    if (prb_run_has_target(&line->run))
        return;
    offer_processes(line);
    line->files = *line->last && (strchr(line->last, '/') || *line->last == '~' || !line->begun);
}

/* Read the words before the last one, and what the last one is; false: they are wrong. */
static bool read_words(struct line *line, char **words)
{
    struct prb_run *run = &line->run;
    struct prb_option_set sets[] = {{NULL, run->options}, {prb_global_options, run->globals}};
    struct prb_scan scan = {.words = words, .sets = sets, .set_count = 2, .unfinished = line->last};
    const char *word;
    bool ok;
    while ((word = prb_scan_next(&scan, &ok, &line->failed)) && word != line->last) {
        if (!run->command && (run->command = prb_command_find(word))) {
            sets[0].options = run->command->options;
        } else if (!run->command || (prb_word_is_pid(word) && !scan.ended && may_be_target(line))) {
            if (!prb_wanted_target_add(&run->target, word, PRB_GLOBAL_TARGET, &line->failed))
                return false;
        } else {
            line->position++;
            scan.ended = scan.ended || run->command->program;
        }
    }
    line->option = scan.wanted;
    line->ended = scan.ended;
    return ok && prb_run_take_target_options(run, &line->failed);
}

static void offer_all(struct line *line)
{
    if (line->option)
        offer_value(line);
    else if (*line->last == '-' && !line->ended && !offer_joined_value(line))
        offer_options(line);
    else if (*line->last == '-' && !line->ended)
        return;
    else if (line->run.command)
        offer_argument(line);
    else
        offer_first(line);
}

static void print_flags(const struct line *line)
{
    const struct {
        bool set;
        const char *name;
    } flags[] = {{line->files, "files"},
                 {line->folders, "folders"},
                 {line->programs, "programs"},
                 {line->join, "join"}};
    fputs("-", stdout);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].set)
            printf(" %s", flags[i].name);
    putchar('\n');
}

bool prb_candidates_print(enum prb_shell shell, const char **words, size_t count,
                          struct prb_error *err)
{
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    int status = 0;
    struct line line = {
        .shell = shell, .last = count ? words[count - 1] : "", .prefix = "", .run.status = &status};
    PRB_AUTO_FREE char **scanned = calloc(count + 2, sizeof *scanned);
    if (!scanned || !(line.out = open_memstream(&text, &size))) {
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    }
    for (size_t i = 0; i + 1 < count; i++)
        scanned[i] = (char *)words[i];
    scanned[count ? count - 1 : 0] = (char *)line.last;
    if (read_words(&line, scanned))
        offer_all(&line);
    prb_wanted_target_free(line.run.target);
    if (fclose(line.out) != 0)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    print_flags(&line);
    fwrite(text, 1, size, stdout);
    return true;
}
