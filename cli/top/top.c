/* probing top: a live view of where the time goes, in one process or in it and those that it
 * starts. */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ends.h"
#include "cli/fleet/job.h"
#include "cli/fleet/sampling.h"
#include "cli/look/database.h"
#include "cli/options.h"
#include "cli/print/out.h"
#include "cli/profile/ranks.h"
#include "cli/top/job_steps.h"
#include "cli/top/kept.h"
#include "cli/top/top.h"

#define DELAY_LEAST 0.1
#define PLAIN_COLUMNS 80
#define TICK 0.1       /* s */
#define STEPS_WAIT 0.1 /* s until the first steps are looked for again */
#define STEPS_RATE 10  /* samples a second where only steps are shown: they are not made of them */

enum { DELAY, COUNT, RATE, VIEW, GIL, IDLE, NATIVE, SUBPROCESSES, RANKS };

static const struct prb_option options[] = {
    [DELAY] = {'d', "delay", "SECONDS", "between two updates, 1 if not given", NULL},
    [COUNT] = {0, "count", "N", "end after so many updates", NULL},
    [RATE] = {'r', "rate", "HZ", "samples a second, 100 if not given", NULL},
    [VIEW] = {0, "view", "WHAT", "what is shown first: functions, threads, processes or steps",
              "functions threads processes steps"},
    [GIL] = {'g', "gil", NULL, "only the time of threads that have the GIL counts", NULL},
    [IDLE] = {'i', "idle", NULL, "the time of threads that wait counts, too", NULL},
    [NATIVE] = {'n', "native", NULL, "native frames too", NULL},
    [SUBPROCESSES] = PRB_OPTION_SUBPROCESSES,
    [RANKS] = PRB_OPTION_RANKS,
    {0},
};

PRB_DEFINE_AUTO_PTR(prb_profiler, struct prb_profiler, prb_profiler_free)
PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)

struct showing {
    struct prb_top top;
    bool screen, failed;
    double delay, next; /* s of the profile */
    unsigned long updates, wanted;
    int wake; /* of a job: a signal that ends it */
};

/* ---- updates ---- */

static bool show_in(struct showing *showing, unsigned columns)
{
    struct prb_lines lines;
    if (!prb_lines_begin(&lines))
        return false;
    prb_top_draw(&showing->top, &lines, columns, showing->screen ? prb_screen_lines() : 0);
    bool good = prb_lines_finish(&lines);
    if (good && showing->screen)
        prb_screen_show(&lines);
    else if (good)
        good = fputs(lines.text, stdout) >= 0 && fputc('\n', stdout) >= 0 && !fflush(stdout);
    prb_lines_free(&lines);
    return good;
}

static bool show(struct showing *showing)
{
    unsigned columns = showing->screen ? prb_screen_columns() : PLAIN_COLUMNS;
    if (!showing->screen && prb_out_columns())
        columns = prb_out_columns();
    return show_in(showing, columns);
}

/* What the screen showed last, as lines: the screen's own are gone when it is closed. */
static bool print_last(struct showing *showing)
{
    unsigned columns = prb_screen_columns();
    prb_screen_close();
    showing->screen = false;
    putchar('\n'); /* some terminals leave the cursor in the last line of the screen */
    return !showing->top.profile || show_in(showing, columns);
}

/* What was typed meanwhile; false: quit. */
static bool take_keys(struct showing *showing, bool *changed)
{
    for (int key; (key = prb_screen_key()) != PRB_KEY_NONE; *changed = true)
        if (key != PRB_KEY_RESIZED && key != PRB_KEY_OTHER && !prb_top_key(&showing->top, key))
            return false;
    return true;
}

/* Ask the processes for their steps while they are shown; true: there is something to show. */
static bool take_steps(struct showing *showing, const struct prb_profile *profile)
{
    struct prb_top *top = &showing->top;
    if (top->view != PRB_TOP_STEPS)
        return true;
    if (!top->steps && !(top->steps = prb_steps_new(showing->delay)))
        return !(showing->failed = true);
    showing->failed = !prb_steps_follow(top->steps, profile);
    if (showing->failed || !prb_steps_ready(top->steps))
        return false;
    showing->failed =
        !prb_steps_take(top->steps, &top->step_rows, &top->step_count, &top->step_cap);
    return !showing->failed;
}

/* Some ten times a second, from within the profiler. */
static bool progress(void *context, const struct prb_profile *profile)
{
    struct showing *showing = context;
    bool changed = false;
    if (showing->screen && showing->top.profile && !take_keys(showing, &changed))
        return false;
    if (profile->seconds >= showing->next) {
        bool steps = showing->top.paused || take_steps(showing, profile);
        showing->next = profile->seconds + (steps ? showing->delay : STEPS_WAIT);
        if (!showing->top.paused && !showing->failed && (steps || showing->screen)) {
            showing->failed = !prb_top_update(&showing->top, profile);
            changed = true;
            showing->updates++;
        }
    }
    if (changed && !showing->failed && showing->top.profile)
        showing->failed = !show(showing);
    return !showing->failed && (!showing->wanted || showing->updates < showing->wanted);
}

/* ---- a job that is gone ---- */

/* What is no live process: a file of the store, or a process that ended. */
static bool is_kept(const struct prb_run *run)
{
    const char *word = prb_run_word(run);
    return prb_run_ended(run) || (word && prb_store_is(word));
}

/* Its last steps, once: they do not change. */
static bool show_kept(const struct prb_run *run, struct showing *showing, struct prb_error *err)
{
    const char *word = prb_run_word(run), *job = word ? word : prb_run_ended(run);
    PRB_AUTO(prb_database) struct prb_database database = {0};
    PRB_AUTO(prb_kept_steps) struct prb_kept_steps steps = {0};
    if (!prb_database_open(run, false, false, &database, err) ||
        !prb_kept_steps_read(database.db, job, &steps, err))
        return false;
    struct prb_profile_process *processes = calloc(steps.count, sizeof *processes);
    if (!processes)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; i < steps.count; i++)
        processes[i] = (struct prb_profile_process){
            .pid = steps.rows[i].pid, .rank = steps.rows[i].rank, .command = word};
    const struct prb_profile profile = {.processes = processes, .process_count = steps.count};
    struct prb_top *top = &showing->top;
    bool good = prb_top_update(top, &profile);
    top->step_rows = steps.rows;
    top->step_count = steps.count;
    good = good && show(showing);
    top->step_rows = NULL;
    prb_top_deinit(top);
    free(processes);
    return good || prb_cli_fail(err, PRB_IO, "", "the output cannot be written");
}

/* ---- the ranks of a job ---- */

static bool job_goes_on(void *context)
{
    struct showing *showing = context;
    struct pollfd wake = {.fd = showing->wake, .events = POLLIN};
    bool changed = false;
    if (poll(&wake, 1, 0) > 0)
        return false;
    if (!showing->screen || !showing->top.profile)
        return true;
    if (!take_keys(showing, &changed))
        return false;
    showing->failed = showing->failed || (changed && !show(showing));
    return !showing->failed;
}

/* What the view shows of the ranks. */
struct job_view {
    struct prb_fleet *fleet;
    struct prb_db *db;
    struct prb_coverage *coverage;
    struct prb_kept_steps steps;
    struct prb_profile_process *processes;
    struct prb_profile profile;
    char missing[300];
};

static void job_view_deinit(struct job_view *view)
{
    prb_kept_steps_free(&view->steps);
    free(view->processes);
}
PRB_DEFINE_AUTO(job_view, struct job_view, job_view_deinit)

static bool update_job(struct showing *showing, struct job_view *view, struct prb_error *err)
{
    struct prb_top *top = &showing->top;
    if (!prb_job_steps_read(prb_fleet_info(view->fleet), view->db, &view->steps, err))
        return false;
    size_t count = view->steps.count;
    free(view->processes);
    if (!(view->processes = calloc(count + 1, sizeof *view->processes)))
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; i < count; i++)
        view->processes[i] = (struct prb_profile_process){.pid = view->steps.rows[i].pid,
                                                          .rank = view->steps.rows[i].rank,
                                                          .command = view->steps.rows[i].command};
    view->profile = (struct prb_profile){.processes = view->processes, .process_count = count};
    PRB_AUTO_FREE char *line =
        prb_coverage_whole(view->coverage) ? NULL : prb_coverage_line(view->coverage);
    snprintf(view->missing, sizeof view->missing, "%s", line ? line : "");
    top->note = view->missing;
    top->step_rows = view->steps.rows;
    top->step_count = count;
    showing->failed = !prb_top_update(top, &view->profile) || !show(showing);
    showing->updates++;
    return !showing->failed || prb_cli_fail(err, PRB_IO, "", "the output cannot be written");
}

/* Until it is time again; false: to be ended. */
static bool wait_for_next(struct showing *showing)
{
    for (double left = showing->delay; left > 0; left -= TICK) {
        struct pollfd wake = {.fd = showing->wake, .events = POLLIN};
        if (poll(&wake, 1, (int)(1e3 * (left < TICK ? left : TICK))) > 0 || !job_goes_on(showing))
            return false;
    }
    return true;
}

static bool step_rounds(struct showing *showing, struct job_view *view, struct prb_error *err)
{
    do {
        if (!showing->top.paused && !update_job(showing, view, err))
            return false;
    } while ((!showing->wanted || showing->updates < showing->wanted) && wait_for_next(showing));
    return true;
}

static bool show_job_steps(const struct prb_run *run, struct showing *showing,
                           struct prb_error *err)
{
    showing->screen = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!showing->screen && !showing->wanted)
        showing->wanted = 1;
    PRB_AUTO_FD int wake = showing->wake = prb_take_ends();
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = NULL;
    PRB_AUTO(prb_db) struct prb_db *db = prb_run_job_db(run, &fleet, &coverage, err);
    PRB_AUTO(job_view)
    struct job_view view = {.fleet = fleet, .db = db, .coverage = &coverage};
    if (!db || (showing->screen && !prb_screen_open(err)))
        return false;
    bool good = step_rounds(showing, &view, err);
    if (showing->screen)
        prb_screen_close();
    showing->top.step_rows = NULL; /* the view's */
    prb_top_deinit(&showing->top);
    if (!good || !prb_run_covered(run, &coverage, err))
        return false;
    prb_out_coverage(&coverage);
    return true;
}

static bool show_rounds(struct showing *showing, struct prb_job_sampling *sampling,
                        struct prb_error *err)
{
    while (!sampling->ended && !sampling->silent && !showing->failed &&
           (!showing->wanted || showing->updates < showing->wanted)) {
        if (!prb_job_sample(sampling, 0, err))
            return false;
        if (sampling->ended || showing->top.paused || !sampling->sum.profile)
            continue;
        showing->top.note = sampling->missing;
        showing->failed = !prb_top_update(&showing->top, sampling->sum.profile) || !show(showing);
        showing->updates++;
    }
    return true;
}

static bool run_job(const struct prb_run *run, struct showing *showing,
                    const struct prb_profiler_options *how, struct prb_error *err)
{
    if (run->options[RANKS].count)
        return prb_usage(run, err, "-t @JOB is all ranks: leave out --ranks");
    if (showing->top.view == PRB_TOP_STEPS)
        return show_job_steps(run, showing, err);
    showing->screen = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    PRB_AUTO_FD int wake = showing->wake = prb_take_ends();
    PRB_AUTO(prb_job_sampling)
    struct prb_job_sampling sampling = {.run = run,
                                        .how = how,
                                        .longest = showing->delay,
                                        .go_on = job_goes_on,
                                        .context = showing};
    if (!prb_job_sampling_begin(&sampling, err) || (showing->screen && !prb_screen_open(err)))
        return false;
    bool good = show_rounds(showing, &sampling, err);
    if (showing->screen)
        prb_screen_close();
    bool shown = showing->top.profile != NULL, failed = showing->failed;
    prb_top_deinit(&showing->top);
    if (good && failed)
        return prb_cli_fail(err, PRB_IO, "", "the output cannot be written");
    if (good && sampling.silent)
        prb_out_note("no rank answers any more");
    if (!good || !shown || !prb_run_covered(run, &sampling.coverage, err))
        return good && !shown;
    prb_out_coverage(&sampling.coverage);
    return true;
}

/* ---- the command ---- */

static bool read_options(const struct prb_run *run, struct showing *showing,
                         struct prb_profiler_options *sampling, struct prb_error *err)
{
    double count = 0;
    showing->delay = 1;
    if (!prb_run_number(run, DELAY, DELAY_LEAST, 3600, &showing->delay, err) ||
        !prb_run_number(run, COUNT, 1, 1e9, &count, err) ||
        !prb_run_number(run, RATE, 0.1, 1e5, &sampling->rate, err))
        return false;
    showing->wanted = (unsigned long)count;
    showing->next = showing->delay < 1 ? showing->delay : 0.3; /* the first one soon */
    const char *view = run->options[VIEW].text;
    showing->top.view = !view                            ? PRB_TOP_FUNCTIONS
                        : strcmp(view, "threads") == 0   ? PRB_TOP_THREADS
                        : strcmp(view, "processes") == 0 ? PRB_TOP_PROCESSES
                        : strcmp(view, "steps") == 0     ? PRB_TOP_STEPS
                                                         : PRB_TOP_FUNCTIONS;
    sampling->mode = run->options[GIL].count    ? PRB_PROFILE_GIL
                     : run->options[IDLE].count ? PRB_PROFILE_WALL
                                                : PRB_PROFILE_ACTIVE;
    sampling->native = run->options[NATIVE].count;
    sampling->subprocesses = run->options[SUBPROCESSES].count;
    sampling->ranks = run->options[RANKS].count;
    sampling->states = true;
    return true;
}

static bool run_top(const struct prb_run *run, struct prb_error *err)
{
    struct showing showing = {0};
    struct prb_profiler_options sampling = {0};
    const char *socket = NULL;
    pid_t pid = 0;
    bool ranks = run->options[RANKS].count;
    if (!read_options(run, &showing, &sampling, err))
        return false;
    if (prb_run_job(run))
        return run_job(run, &showing, &sampling, err);
    if (prb_run_has_target(run) && is_kept(run) && showing.top.view == PRB_TOP_STEPS)
        return show_kept(run, &showing, err);
    if (prb_run_has_target(run) && prb_run_word(run) && prb_store_is(prb_run_word(run)))
        return prb_cli_fail(err, PRB_USAGE, "what it keeps of steps: top --view steps",
                            "%s is a file of the store, and this view needs a live process",
                            prb_run_word(run));
    if ((!ranks || prb_run_has_target(run)) &&
        !prb_run_process_or_job(run, ranks, &pid, &socket, err))
        return err->code == PRB_NOT_FOUND && prb_run_word(run) &&
               showing.top.view == PRB_TOP_STEPS && show_kept(run, &showing, err);
    showing.screen = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!showing.screen && showing.top.view == PRB_TOP_STEPS) {
        showing.wanted = showing.wanted ? showing.wanted : 1;
        sampling.rate = run->options[RATE].count ? sampling.rate : STEPS_RATE;
    }
    PRB_AUTO(prb_profiler) struct prb_profiler *profiler = prb_profiler_new(&sampling, err);
    if (!profiler ||
        !(ranks ? prb_run_ranks(profiler, pid, err)
                : prb_profiler_add(profiler, pid, err) || prb_profiler_follow(profiler, pid)))
        return false;
    PRB_AUTO_FD int wake = prb_take_ends();
    if (showing.screen && !prb_screen_open(err))
        return false;
    bool good = prb_profiler_run(profiler, 0, wake, progress, &showing, err);
    bool ended = good && !showing.failed && prb_profiler_alive(profiler) == 0;
    if (showing.screen && ended)
        showing.failed = !print_last(&showing);
    else if (showing.screen)
        prb_screen_close();
    prb_top_deinit(&showing.top);
    if (good && showing.failed)
        return prb_cli_fail(err, PRB_IO, "", "the output cannot be written");
    if (ended) {
        if (ranks)
            puts("All ranks ended.");
        else
            printf("Process %d ended.\n", (int)pid);
    }
    return good;
}

const struct prb_command prb_command_top = {
    .name = "top",
    .aliases = "",
    .summary = "a live view of where the time goes",
    .arguments = "",
    .target = PRB_USES_TARGET_IF_GIVEN,
    .description =
        "Samples the target from outside, as profile does, and shows while it runs: functions by "
        "their own and total share, of the last interval and since the beginning; threads with "
        "their CPU time, their share of the GIL and what they wait for; processes and ranks "
        "side by side. Nothing is stopped.\n\n"
        "The view steps shows a training job: how long a step takes and which part of it each "
        "phase (data, forward, backward, optimizer, ...), items a second, loss, memory, GPU. It "
        "says which tier it shows: 1 where PyTorch is traced (config "
        "probing.torch.profiling=on), else 0, sampled from outside, nothing loaded. Of a file of "
        "the "
        "store, or of a process that ended, it shows the last steps that were kept, once.\n\n"
        "Keys: f functions, t threads, p processes, e steps, Enter the stack of the chosen thread, "
        "the "
        "threads of the chosen process or the lines and callers of the chosen function, s sort, / "
        "filter, Space pauses the display, h help, q back "
        "or quit. Threads, processes and the functions of both leave the list 5 s after they "
        "ended. When the input or the output is not a terminal, updates come as plain lines, one "
        "after the other; the view steps comes once, unless --count says more.",
    .options = options,
    .examples = "probing 1234 top\n"
                "probing 1234 top --ranks --view processes  # ranks side by side\n"
                "probing -t @ top  # all ranks of the job, on all its hosts\n"
                "probing 1234 top --view steps\n"
                "probing -t train.db top --view steps  # a job that is gone, from the store\n"
                "probing 1234 top --count 1 | head -20  # one update as text\n",
    .run = run_top,
};
