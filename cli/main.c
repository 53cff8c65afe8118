/* probing, the command line: finds target and command among the words, runs it, reports what went
 * wrong. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/fleet/job.h"
#include "cli/options.h"
#include "cli/print/out.h"
#include "cli/serve/program.h"

/*
 * Options before the command, targets, the command.  A word that is not a command is a target when it
 * looks like one, or when the word after it is a command.
 */
static bool take_command(struct prb_run *run, struct prb_scan *scan, struct prb_error *err)
{
    const char *word;
    bool ok;
    while ((word = prb_scan_next(scan, &ok, err))) {
        run->command = prb_command_find(word);
        if (run->command)
            return true;
        if (!run->server && prb_word_is_server(word)) {
            run->server = word;
            continue;
        }
        bool named = *scan->words && prb_command_find(*scan->words);
        if (!prb_word_is_target(word, !prb_run_has_target(run)) &&
            !(named && !prb_run_has_target(run)))
            return prb_unknown_command(word, err);
        if (!prb_wanted_target_add(&run->target, word, PRB_GLOBAL_TARGET, err))
            return false;
    }
    return ok;
}

static bool has_target(const struct prb_run *run)
{
    const struct prb_option_value *target = &run->globals[PRB_GLOBAL_TARGET];
    return prb_run_has_target(run) || (target->count && !prb_word_is_server(target->text)) ||
           run->globals[PRB_GLOBAL_PID].count || run->globals[PRB_GLOBAL_NAME].count;
}

/* Whether an argument may be the target after all: as with py-spy, strace and memray, people type a
 * pid behind the command. */
static bool may_be_target(const struct prb_run *run, const char *word)
{
    return run->command->target > PRB_USES_JOB_IF_GIVEN && run->command != &prb_command_help &&
           !has_target(run) && prb_word_is_pid(word);
}

/* Of a command that takes any number of words the first may be the pid, else any. */
static bool take_late_target(struct prb_run *run, struct prb_error *err)
{
    size_t most = run->command->arguments_max == PRB_WORDS_MAX ? 1 : run->argument_count;
    for (size_t i = 0; i < run->argument_count && i < most; i++) {
        if (!may_be_target(run, run->arguments[i]))
            continue;
        const char *word = run->arguments[i];
        run->argument_count--;
        memmove(run->arguments + i, run->arguments + i + 1,
                (run->argument_count - i) * sizeof *run->arguments);
        return prb_wanted_target_add(&run->target, word, PRB_GLOBAL_TARGET, err);
    }
    return true;
}

/* The words behind the command: its own options, global ones where it has none of that name,
 * arguments. */
static bool take_words(struct prb_run *run, struct prb_scan *scan, struct prb_error *err)
{
    const struct prb_option_set sets[] = {{run->command->options, run->options}, *scan->sets};
    const char *word;
    bool ok;
    scan->sets = sets;
    scan->set_count = 2;
    while ((word = prb_scan_next(scan, &ok, err))) {
        if (run->command->program && !scan->ended && may_be_target(run, word)) {
            if (!prb_wanted_target_add(&run->target, word, PRB_GLOBAL_TARGET, err))
                return false;
            continue;
        }
        run->arguments[run->argument_count++] = word;
        scan->ended = scan->ended || run->command->program;
    }
    if (!ok && err && !err->remedy[0])
        snprintf(err->remedy, sizeof err->remedy, "`probing help %s` lists the options",
                 run->command->name);
    return ok;
}

static bool take_arguments(struct prb_run *run, struct prb_scan *scan, struct prb_error *err)
{
    if (!take_words(run, scan, err))
        return false;
    if (run->globals[PRB_GLOBAL_HELP].count)
        return true;
    if (!run->command->program && !take_late_target(run, err))
        return false;
    const char *words = run->command->words;
    char all[PRB_LISTED];
    if (run->argument_count < run->command->arguments_min && words)
        return prb_usage(run, err, "%s needs one of: %s", run->command->name,
                         prb_listed(words, all));
    if (run->argument_count < run->command->arguments_min)
        return prb_usage(run, err, "%s needs an argument: %s", run->command->name,
                         run->command->arguments);
    if (run->argument_count > run->command->arguments_max)
        return prb_usage(run, err, "%s: one argument too many, \"%s\"", run->command->name,
                         run->arguments[run->command->arguments_max]);
    return true;
}

/* --help and --version are the commands help and version. */
static void apply_globals(struct prb_run *run)
{
    const char *color = run->globals[PRB_GLOBAL_COLOR].text;
    prb_out_color(color ? color : "auto");
    run->verbose = run->globals[PRB_GLOBAL_VERBOSE].count > 0;
    if (run->globals[PRB_GLOBAL_HELP].count) {
        run->argument_count = run->command ? 1 : 0;
        if (run->command)
            run->arguments[0] = run->command->name;
        run->command = &prb_command_help;
    } else if (run->globals[PRB_GLOBAL_VERSION].count) {
        run->command = &prb_command_version;
    }
}

static bool run_words(struct prb_run *run, char **words, struct prb_error *err)
{
    const struct prb_option_set globals = {prb_global_options, run->globals};
    struct prb_scan scan = {.words = words, .sets = &globals, .set_count = 1};
    if (!take_command(run, &scan, err) || (run->command && !take_arguments(run, &scan, err)))
        return false;
    apply_globals(run);
    if (!run->command && prb_run_has_target(run))
        return prb_cli_fail(err, PRB_USAGE,
                            "for its stacks: backtrace; `probing help` lists the commands",
                            "no command was given for the target");
    if (!run->command)
        return prb_cli_fail(
            err, PRB_USAGE,
            "for a start: `probing list`, then `probing PID backtrace`; `probing help`",
            "no command was given");
    if (run->command != &prb_command_help && !prb_run_take_target_options(run, err))
        return false;
    double timeout;
    if (!prb_run_job_timeout(run, &timeout, err))
        return false;
    if (run->server && run->command != &prb_command_help)
        return prb_run_elsewhere(run, err);
    bool none = run->command->target == PRB_USES_NO_TARGET,
         job = run->command->target == PRB_USES_JOB_IF_GIVEN;
    if ((none || (job && !prb_run_job(run))) && prb_run_has_target(run) &&
        run->command != &prb_command_help)
        return prb_usage(run, err, "%s takes no target%s", run->command->name,
                         job ? " but a job, -t @JOB" : "");
    return run->command->run(run, err) && prb_out_finish(err);
}

/* Who starts us may have closed 0, 1 or 2: the next file would get that number, and what we print
 * would go into it.  /dev/null takes the place, opened for the other direction, so that using it
 * fails as a closed descriptor does. */
static void fill_standard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(prb_code_exit(PRB_IO));
}

/* Most commands need some hundred kilobytes and end: ask for them in one call, and give back only
 * what is large. */
static void ask_once_for_memory(void)
{
#ifdef M_TOP_PAD
    mallopt(M_TOP_PAD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

int main(int argc, char **argv)
{
    ask_once_for_memory();
    fill_standard();
    prb_out_progress();
    struct prb_error err = {0};
    int status = 0;
    struct prb_run run = {.status = &status};
    signal(SIGPIPE,
           SIG_DFL); /* `probing ... | head` ends quietly, even under a parent that ignores it */
    run.arguments = calloc((size_t)argc + 2, sizeof *run.arguments);
    bool ok = run.arguments ? run_words(&run, argv + (argc > 0), &err)
                            : prb_cli_fail(&err, PRB_NOMEM, "", "out of memory");
    if (!ok)
        prb_out_error(&err);
    prb_wanted_target_free(run.target);
    free(run.arguments);
    if (ok || status)
        return status;
    return prb_code_exit(err.code == PRB_OK ? PRB_INTERNAL : err.code);
}
