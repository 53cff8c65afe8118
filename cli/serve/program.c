/* Finding and becoming probing-serve; what another machine's server is asked. */
#include "cli/serve/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIXED 16 /* words beside those of the user */

bool prb_serve_program(char out[PATH_MAX], struct prb_error *err)
{
    static const char *const places[] = {"probing-serve", "../probing-serve"};
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    own[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(own, '/');
    bool build = slash && slash - own >= 6 && strncmp(slash - 6, "/.libs", 6) == 0;
    if (slash)
        *slash = '\0';
    int len = snprintf(out, PATH_MAX, "%s/%s", own, places[build]);
    return (len < PATH_MAX && access(out, X_OK) == 0) ||
           prb_cli_fail(err, PRB_UNSUPPORTED, "it is built unless configure had --without-serve",
                        "the server's program is not there: %s", out);
}

bool prb_serve_become(const char **words, struct prb_error *err)
{
    char program[PATH_MAX];
    if (!prb_serve_program(program, err))
        return false;
    words[0] = program;
    fflush(stdout);
    execv(program, (char *const *)words);
    return prb_cli_fail(err, PRB_IO, "", "%s cannot be run: %s", program, strerror(errno));
}

/* ---- a server of its own ---- */

/* In a process that nobody waits for. */
static void run_target(const char *program, pid_t pid, const char *address, int told)
{
    char number[16];
    int null = open("/dev/null", O_RDONLY);
    snprintf(number, sizeof number, "%d", (int)pid);
    if (setsid() >= 0 && null >= 0 && dup2(null, 0) == 0 && dup2(told, 1) == 1 &&
        dup2(told, 2) == 2)
        execl(program, "probing-serve", "--target", number, "--address", address, (char *)NULL);
    _exit(127);
}

bool prb_serve_target(pid_t pid, const char *address, struct prb_error *err)
{
    char program[PATH_MAX], line[600];
    int told[2];
    if (!prb_serve_program(program, err))
        return false;
    if (pipe2(told, O_CLOEXEC) < 0)
        return prb_cli_fail(err, PRB_IO, "", "no pipe: %s", strerror(errno));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0)
            run_target(program, pid, address, told[1]);
        _exit(0);
    }
    close(told[1]);
    if (child > 0)
        waitpid(child, NULL, 0);
    PRB_AUTO(file) FILE *from = fdopen(told[0], "re");
    if (!from || !fgets(line, sizeof line, from))
        return prb_cli_fail(err, PRB_INTERNAL, "", "the server did not start");
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "http", 4) != 0)
        return prb_cli_fail(err, PRB_IO, "", "no server: %s",
                            strncmp(line, "probing: ", 9) == 0 ? line + 9 : line);
    puts(line);
    return true;
}

/* ---- elsewhere ---- */

static bool is_look(const struct prb_run *run)
{
    static const char names[] =
        " list backtrace tasks query tables inspect memory config profile export ";
    char name[40];
    snprintf(name, sizeof name, " %s ", run->command->name);
    bool list = run->argument_count && strcmp(run->arguments[0], "list") == 0;
    return strstr(names, name) || (run->command == &prb_command_crash && list);
}

/* The address with a token would stand in the arguments of a program, where others may read it. */
static void hide_token(char *where)
{
    char *token = strstr(where, "#token=");
    if (!token)
        return;
    setenv("PROBING_AUTH_TOKEN", token + strlen("#token="), 1);
    *token = '\0';
}

struct words {
    const char **items; /* each but the first is ours to free */
    size_t count, cap;
};

static void words_deinit(struct words *words)
{
    for (size_t i = 1; i < words->count; i++)
        free((char *)words->items[i]);
    free(words->items);
}
PRB_DEFINE_AUTO(words, struct words, words_deinit)

/* "NAME" or "NAME=VALUE"; without a name the value.  False: out of memory. */
static bool add(struct words *words, const char *name, const char *value)
{
    char *text = NULL;
    if (words->count + 1 >= words->cap)
        return false;
    if (asprintf(&text, "%s%s%s", name, *name && value ? "=" : "", value ? value : "") < 0)
        return false;
    words->items[words->count++] = text;
    return true;
}

/* Each option as one word, as the server checks them; where a file would be written, that is done
 * here. */
static bool add_options(const struct prb_run *run, struct words *words, const char **output)
{
    const struct prb_option *options = run->command->options;
    char name[60];
    for (size_t i = 0; options && options[i].name; i++) {
        const struct prb_option_value *given = run->options + i;
        if (!given->count)
            continue;
        if (strcmp(options[i].name, "output") == 0) {
            *output = given->text;
            continue;
        }
        snprintf(name, sizeof name, "--%s", options[i].name);
        if (!add(words, name, given->text))
            return false;
    }
    return true;
}

/* The words of the command, behind "--" as probing-serve has them. */
static bool add_command(const struct prb_run *run, struct words *words, const char **output)
{
    bool crash = run->command == &prb_command_crash;
    if (!add(words, crash ? "crashes" : run->command->name, NULL) ||
        !add_options(run, words, output))
        return false;
    if (run->argument_count > crash && !add(words, "--", NULL))
        return false;
    for (size_t i = crash; i < run->argument_count; i++)
        if (!add(words, "", run->arguments[i]))
            return false;
    return true;
}

bool prb_run_elsewhere(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO_FREE char *where = strdup(run->server);
    PRB_AUTO(words) struct words own = {0}, command = {0};
    const char *pid = NULL, *name = NULL, *output = NULL;
    own.cap = command.cap = FIXED + PRB_OPTIONS_MAX + run->argument_count;
    own.items = calloc(2 * own.cap, sizeof *own.items);
    command.items = calloc(command.cap, sizeof *command.items);
    if (!where || !own.items || !command.items)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (!is_look(run))
        return prb_cli_fail(err, PRB_UNSUPPORTED,
                            "those that look are: list, backtrace, tasks, query, tables, inspect, "
                            "memory, config, profile, export, crash list",
                            "%s is not asked of a server", run->command->name);
    if (!prb_run_target_words(run, &pid, &name, err))
        return false;
    hide_token(where);
    command.count = own.count = 1;
    if (!add_command(run, &command, &output) || !add(&own, "--ask", NULL) ||
        !add(&own, "", where) || (pid && !add(&own, "--pid", pid)) ||
        (name && !add(&own, "--name", name)) || (output && !add(&own, "--output", output)) ||
        !add(&own, "--", NULL))
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    size_t count = own.count;
    memcpy(own.items + count, command.items + 1, command.count * sizeof *own.items);
    return prb_serve_become(own.items, err);
}
