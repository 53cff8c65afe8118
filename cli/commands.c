/* The lists of commands and of global options, and the command that a word means. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options.h"

const struct prb_command *const prb_commands[] = {
#define COMMAND(name) &prb_command_##name,
#include "cli/commands.inc"
#undef COMMAND
    NULL,
};

const struct prb_option prb_global_options[] = {
    [PRB_GLOBAL_TARGET] = {'t', "target", "TARGET",
                           "a pid, a core or snapshot file, a probe's socket, a unique part of a "
                           "command line, a job: "
                           "@JOB:RANKS, or a server: HOST:PORT",
                           NULL},
    [PRB_GLOBAL_PID] = {'p', "pid", "PID", "a process by its number", NULL},
    [PRB_GLOBAL_NAME] = {'n', "name", "TEXT", "the Python process whose command line contains TEXT",
                         NULL},
    [PRB_GLOBAL_EXE] = {0, "exe", "FILE",
                        "the executable of a core, when it is not where the core says", NULL},
    [PRB_GLOBAL_SYSROOT] = {0, "sysroot", "DIR", "the folder of the files that a core refers to",
                            NULL},
    [PRB_GLOBAL_BUS] = {0, "bus", "FILE|URL", "of a job: the bus of its hosts' agents", NULL},
    [PRB_GLOBAL_TIMEOUT] = {0, "timeout", "SECONDS",
                            "of a job: how long to wait for its ranks' answers", NULL},
    [PRB_GLOBAL_STRICT] = {0, "strict", NULL, "of a job: print nothing unless all ranks answer",
                           NULL},
    [PRB_GLOBAL_COLOR] = {0, "color", "WHEN",
                          "colours: auto (on a terminal, unless NO_COLOR is set), always, never",
                          "auto always never"},
    [PRB_GLOBAL_VERBOSE] = {'v', "verbose", NULL, "show more", NULL},
    [PRB_GLOBAL_HELP] = {'h', "help", NULL, "help, of the command when one is given", NULL},
    [PRB_GLOBAL_VERSION] = {'V', "version", NULL, "the version", NULL},
    {0},
};

#define WORDS_MAX 64 /* names and aliases of all commands */
#define ALIAS_MAX 24

const struct prb_command *prb_command_find(const char *word)
{
    for (const struct prb_command *const *at = prb_commands; *at; at++)
        if (strcmp((*at)->name, word) == 0 || prb_word_in((*at)->aliases, word))
            return *at;
    return NULL;
}

const struct prb_command *prb_command_nearest(const char *word)
{
    char aliases[WORDS_MAX][ALIAS_MAX];
    const char *words[WORDS_MAX];
    size_t count = 0;
    for (const struct prb_command *const *at = prb_commands; *at && count < WORDS_MAX; at++)
        words[count++] = (*at)->name;
    for (const struct prb_command *const *at = prb_commands; *at; at++) {
        for (const char *alias = (*at)->aliases; *alias && count < WORDS_MAX;
             alias += strspn(alias, " ")) {
            size_t n = strcspn(alias, " ");
            snprintf(aliases[count], ALIAS_MAX, "%.*s", (int)n, alias);
            words[count] = aliases[count];
            count++;
            alias += n;
        }
    }
    const char *near = prb_nearest(word, words, count);
    return near ? prb_command_find(near) : NULL;
}

/* The command that takes the word as its first argument, or NULL. */
static const struct prb_command *command_of(const char *argument)
{
    for (const struct prb_command *const *at = prb_commands; *at; at++)
        if ((*at)->words && prb_word_in((*at)->words, argument))
            return *at;
    return NULL;
}

bool prb_unknown_command(const char *word, struct prb_error *err)
{
    const struct prb_command *taker = command_of(word);
    const struct prb_command *near = prb_command_nearest(word);
    char remedy[120];
    snprintf(remedy, sizeof remedy,
             near ? "did you mean `%s`?" : "`probing help` lists the commands",
             near ? near->name : "");
    if (taker)
        snprintf(remedy, sizeof remedy, "did you mean `%s %.40s`?", taker->name, word);
    return prb_cli_fail(err, PRB_USAGE, remedy, "unknown command \"%s\"", word);
}
