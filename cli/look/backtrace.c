/* probing backtrace: every thread's stack as text or JSON. */
#include <errno.h>
#include <string.h>

#include "cli/command.h"
#include "cli/fleet/stacks.h"
#include "cli/look/many.h"
#include "cli/look/stacks.h"
#include "cli/look/watch.h"
#include "cli/options.h"
#include "cli/print/out.h"

#define WATCH_SECONDS 1.0
#define WATCH_LEAST 0.02

enum {
    NATIVE,
    LOCALS,
    ALL_INTERPRETERS,
    STOP,
    JSON,
    THREAD,
    GROUP,
    WATCH,
    LINES,
    ASYNC,
    SUBPROCESSES,
    RANKS,
    REVEAL,
    BY
};

static const struct prb_option options[] = {
    [NATIVE] = {0, "native", NULL, "native frames too, and threads without Python", NULL},
    [LOCALS] = {'l', "locals", NULL, "the values of local variables; -v shows longer ones", NULL},
    [ALL_INTERPRETERS] = {'a', "all-interpreters", NULL, "subinterpreters too", NULL},
    [STOP] = {0, "stop", NULL, "stop the Python threads while they are read", NULL},
    [JSON] = {'j', "json", NULL, "JSON, with every key of `py-spy dump --json`", NULL},
    [THREAD] = {0, "thread", "THREAD",
                "one thread, by name, the kernel's number or threading.get_ident()", NULL},
    [GROUP] = {'g', "group", NULL, "threads with equal stacks together, the largest group first",
               NULL},
    [WATCH] = {'w', "watch", "[SECONDS]",
               "again and again, every second or so many SECONDS, until Ctrl-C", NULL},
    [LINES] = {0, "source-lines", NULL,
               "with --native: file and line from debug information (slower)", NULL},
    [ASYNC] = {0, "async", NULL,
               "below the asyncio task that a thread runs the tasks that wait for it", NULL},
    [SUBPROCESSES] = PRB_OPTION_READ_SUBPROCESSES,
    [RANKS] = PRB_OPTION_READ_RANKS,
    [REVEAL] = {0, "reveal-secrets", NULL, "with --locals: what looks secret, not ***", NULL},
    [BY] = {0, "by", "WHAT", "of a job: equal by function, or by line (the default)",
            "function line"},
    {0},
};

struct view {
    struct prb_target *target;   /* NULL: those of many */
    const struct prb_many *many; /* NULL: one target */
    const struct prb_stack_options *options;
    struct prb_stacks_style style;
    bool json, again;   /* again: redrawn again and again */
    bool tasks;         /* with those of asyncio */
    const char *thread; /* NULL: all */
};

PRB_DEFINE_AUTO_PTR(prb_async_tasks, struct prb_async_tasks, prb_async_tasks_free)

static bool add_tasks(struct prb_target *target, struct prb_stacks *stacks, struct prb_error *err)
{
    PRB_AUTO(prb_async_tasks) struct prb_async_tasks *tasks = prb_async_tasks_take(target, err);
    return tasks && prb_stacks_add_tasks(stacks, tasks, err);
}

/* Which threads there are, as many as fit. */
static void name_threads(const struct prb_stacks *stacks, struct prb_error *err)
{
    char *text = err->remedy, one[96];
    size_t len = (size_t)sprintf(text, "its threads are: ");
    for (size_t i = 0; i < stacks->thread_count; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        size_t more = (size_t)snprintf(one, sizeof one, "%s%d%s%.60s", i ? ", " : "",
                                       (int)thread->os_thread_id, thread->name ? " " : "",
                                       thread->name ? thread->name : "");
        bool fits = len + more + sizeof ", …" < sizeof err->remedy;
        len += (size_t)sprintf(text + len, "%s", fits ? one : ", …");
        if (!fits)
            break;
    }
}

/* Only the threads that the word means stay. */
static bool choose(struct prb_stacks *stacks, const char *word, struct prb_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (prb_thread_is(&stacks->threads[i], stacks->target.pid, word))
            stacks->threads[kept++] = stacks->threads[i];
    if (kept == 0) {
        prb_cli_fail(err, PRB_NOT_FOUND, "", "process %d has no thread \"%.60s\"",
                     (int)stacks->target.pid, word);
        name_threads(stacks, err);
        return false;
    }
    stacks->thread_count = kept;
    return true;
}

/* By a number no other thread was read: for the message they are. */
static void no_thread(const struct view *view, struct prb_target *target, struct prb_error *err)
{
    struct prb_stack_options all = *view->options;
    all.only_thread = 0;
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = prb_stacks_take(target, &all, NULL);
    if (stacks)
        name_threads(stacks, err);
}

static struct prb_stacks *take(const struct view *view, struct prb_target *target,
                               struct prb_error *err)
{
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = prb_stacks_take(target, view->options, err);
    if (!stacks && view->options->only_thread && err && err->code == PRB_NOT_FOUND)
        no_thread(view, target, err);
    if (!stacks || (view->thread && !choose(stacks, view->thread, err)) ||
        (view->tasks && !add_tasks(target, stacks, err)))
        return NULL;
    if (stacks->warning && !view->again)
        prb_out_note(stacks->warning);
    return PRB_STEAL(stacks);
}

static bool print_json(char *json, FILE *out)
{
    PRB_AUTO_FREE char *text = json;
    if (!text)
        return false;
    prb_out_json(out, text, strlen(text));
    fputc('\n', out);
    return true;
}

static bool draw(void *context, FILE *out, struct prb_error *err)
{
    const struct view *view = context;
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = take(view, view->target, err);
    if (!stacks)
        return false;
    if (view->json)
        return print_json(prb_stacks_json(stacks, err), out);
    return prb_stacks_print(stacks, &view->style, out, err);
}

/* ---- several processes ---- */

static bool print_each(const struct view *view, const struct prb_process_stacks *all, size_t count,
                       FILE *out, struct prb_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc('\n', out);
        prb_out_style(out, PRB_STYLE_TITLE);
        if (all[i].rank >= 0)
            fprintf(out, "Rank %d\n", all[i].rank);
        prb_out_style(out, PRB_STYLE_PLAIN);
        if (!prb_stacks_print(all[i].stacks, &view->style, out, err))
            return false;
    }
    return true;
}

static bool print_all_json(const struct prb_process_stacks *all, size_t count, FILE *out,
                           struct prb_error *err)
{
    PRB_AUTO_FREE const struct prb_stacks **stacks = calloc(count + 1, sizeof *stacks);
    PRB_AUTO_FREE int *ranks = calloc(count + 1, sizeof *ranks);
    if (!stacks || !ranks)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; i < count; i++) {
        stacks[i] = all[i].stacks;
        ranks[i] = all[i].rank;
    }
    return print_json(prb_stacks_json_all(stacks, ranks, count, err), out);
}

/* One that ended meanwhile, or lacks the thread, is left out with a note. */
static bool draw_many(void *context, FILE *out, struct prb_error *err)
{
    const struct view *view = context;
    size_t count = 0;
    struct prb_error why = {0};
    PRB_AUTO_FREE struct prb_process_stacks *all = calloc(view->many->count, sizeof *all);
    if (!all)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; i < view->many->count; i++) {
        const struct prb_one *one = &view->many->items[i];
        all[count].rank = one->rank;
        if ((all[count].stacks = take(view, one->target, &why)))
            count++;
        else
            prb_many_left_out(one, &why);
    }
    bool ok = count > 0;
    if (!ok)
        *err = why;
    else if (view->json)
        ok = print_all_json(all, count, out, err);
    else if (view->style.group)
        ok = prb_stacks_print_merged(all, count, view->style.verbose, out, err);
    else
        ok = print_each(view, all, count, out, err);
    for (size_t i = 0; i < count; i++)
        prb_stacks_free(all[i].stacks);
    return ok;
}

static bool draw_once(struct view *view, struct prb_error *err)
{
    PRB_AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    bool ok = view->many ? draw_many(view, out, err) : draw(view, out, err);
    if (fclose(out) != 0)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (ok)
        fwrite(text, 1, size, stdout);
    return ok;
}

/* Of the ranks of a job, merged. */
static bool of_job(const struct prb_run *run, const struct prb_stack_options *wanted,
                   const char *thread, struct prb_error *err)
{
    static const int alone[] = {STOP, WATCH, LINES, ASYNC, SUBPROCESSES};
    bool own = run->command->options == options;
    for (size_t i = 0; own && i < sizeof alone / sizeof *alone; i++)
        if (run->options[alone[i]].count)
            return prb_usage(run, err, "--%s is for one process, and %s is a job",
                             options[alone[i]].name, prb_run_job(run));
    const char *by = own ? run->options[BY].text : NULL;
    const struct prb_job_stacks how = {
        .options = wanted,
        .thread = thread,
        .by_function = by && strcmp(by, "function") == 0,
        .json = own && run->options[JSON].count,
    };
    return prb_job_backtrace(run, &how, err);
}

static bool backtrace(const struct prb_run *run, const struct prb_stack_options *wanted,
                      const char *thread, struct prb_error *err)
{
    bool own = run->command->options == options;
    if (prb_run_job(run))
        return of_job(run, wanted, thread, err);
    double seconds = own && run->options[WATCH].count ? WATCH_SECONDS : 0; /* 0: once */
    if (own && !prb_run_number(run, WATCH, WATCH_LEAST, PRB_SECONDS_MOST, &seconds, err))
        return false;
    bool ranks = own && run->options[RANKS].count;
    bool subprocesses = own && run->options[SUBPROCESSES].count, several = ranks || subprocesses;
    if (several && seconds > 0)
        return prb_usage(run, err, "--watch shows one process: leave out --ranks, --subprocesses");
    PRB_AUTO(prb_many)
    struct prb_many *many = several ? prb_many_open(run, ranks, subprocesses, err) : NULL;
    PRB_AUTO(prb_target) struct prb_target *target = several ? NULL : prb_run_open(run, err);
    if (!target && !many)
        return false;
    struct view view = {
        .target = target,
        .many = many,
        .options = wanted,
        .style = {.verbose = run->verbose,
                  .group = own && run->options[GROUP].count,
                  .crash = target ? prb_target_crash(target) : NULL},
        .json = own && run->options[JSON].count,
        .again = seconds > 0,
        .tasks = own && run->options[ASYNC].count,
        .thread = thread,
    };
    if (seconds <= 0)
        return draw_once(&view, err);
    const struct prb_target_info *info = prb_target_info(target);
    if (info->kind != PRB_TARGET_PROCESS)
        return prb_usage(run, err, "--watch: a core or snapshot does not change");
    return prb_watch(info->pid, seconds, draw, &view, err);
}

bool prb_backtrace(const struct prb_run *run, const struct prb_stack_options *wanted,
                   struct prb_error *err)
{
    return backtrace(run, wanted, NULL, err);
}

static bool run_backtrace(const struct prb_run *run, struct prb_error *err)
{
    struct prb_stack_options wanted = {
        .native = run->options[NATIVE].count,
        .locals = run->options[LOCALS].count,
        .all_interpreters = run->options[ALL_INTERPRETERS].count,
        .stop = run->options[STOP].count,
        .hide_secrets = !run->options[REVEAL].count,
        .source_lines = run->options[LINES].count,
        .repr_limit = run->options[JSON].count || run->verbose ? 0 : PRB_STACKS_TEXT_REPR,
    };
    const char *thread = run->options[THREAD].text;
    if (thread && run->argument_count)
        return prb_usage(run, err, "the thread is given twice");
    if (run->argument_count)
        thread = run->arguments[0];
    if (thread && prb_word_is_pid(thread)) /* by a number no other thread is read at all */
        wanted.only_thread = strtoull(thread, NULL, 10);
    if (run->options[BY].count && !prb_run_job(run))
        return prb_usage(run, err, "--by is for the ranks of a job: -t @JOB");
    if (run->options[JSON].count && run->options[GROUP].count && !prb_run_job(run))
        return prb_usage(run, err, "--group folds text; --json lists every thread");
    if (run->options[LINES].count && !wanted.native)
        return prb_usage(run, err, "--source-lines goes with --native");
    return backtrace(run, &wanted, thread, err);
}

const struct prb_command prb_command_backtrace = {
    .name = "backtrace",
    .aliases = "bt b dump remote",
    .summary = "show the stack of every thread",
    .arguments = "[THREAD]",
    .arguments_max = 1,
    .target = PRB_USES_TARGET_IF_GIVEN,
    .description = "Reads the stacks of a live process from outside: nothing is loaded into it "
                   "and, without --stop, its Python "
                   "threads are not stopped. Each stack is read until two readings agree; one that "
                   "never settles is marked "
                   "unstable. The innermost frame comes first.\n\n"
                   "A thread is active when it runs or holds the GIL (+gil), or idle; +gc means "
                   "that it collects garbage. "
                   "With --native, frames of C and C++ appear among Python's; one found without "
                   "unwind information is marked "
                   "[guessed]. A thread blocked in a system call is read as it is; one that runs "
                   "is stopped alone, for the copy "
                   "of its registers and stack.",
    .options = options,
    .examples =
        "probing 12345 backtrace  # all Python threads\n"
        "probing -n train.py backtrace --native --locals  # by name, with C frames and variables\n"
        "probing 12345 bt --group  # one stack for each group of equal threads\n"
        "probing 12345 bt --ranks --group  # which ranks of its job are where\n"
        "probing core.12345 bt --json  # of a core file, for scripts\n"
        "probing -t @ bt  # of all ranks of the job, the odd ones first\n",
    .run = run_backtrace,
};
