/*
 * probing profile: where the time goes in running processes, or in a program that it starts.
 * Option names and meanings are py-spy's where it has the option.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/ends.h"
#include "cli/fleet/job.h"
#include "cli/fleet/sampling.h"
#include "cli/options.h"
#include "cli/print/out.h"
#include "cli/profile/kept.h"
#include "cli/profile/memory.h"
#include "cli/profile/ranks.h"

/* s between two checks of a program that we started, until Python runs in it */
#define PAUSE_LEAST 0.01
#define PAUSE_MOST 0.2

enum {
    DURATION,
    RATE,
    OUTPUT,
    FORMAT,
    MODE,
    LIVE,
    GIL,
    IDLE,
    NATIVE,
    CC,
    THREADS,
    ASYNC,
    SUBPROCESSES,
    RANKS,
    SOURCE,
    FUNCTION,
    NOLINENO,
    FULL_FILENAMES,
    INVERTED,
    GROUP,
};

static const struct prb_option options[] = {
    [DURATION] = {'d', "duration", "SECONDS",
                  "how long; until Ctrl-C or the target's end if not given", NULL},
    [RATE] = {'r', "rate", "HZ", "samples a second, 100 if not given", NULL},
    [OUTPUT] = {'o', "output", "FILE", "where to; - is standard output", NULL},
    [FORMAT] = {'f', "format", "FORMAT",
                "its format; if not given by the file's name, or flamegraph", NULL},
    [MODE] = {0, "mode", "MODE",
              "which time counts: active (threads that run or have the GIL), wall, cpu, gil, "
              "exception; memory: bytes that are allocated",
              "active wall cpu gil exception memory"},
    [LIVE] = {0, "live", NULL, "with --mode memory: what lives of what was allocated", NULL},
    [GIL] = {'g', "gil", NULL, "only threads that have the GIL: --mode gil", NULL},
    [IDLE] = {'i', "idle", NULL, "threads that wait, too: --mode wall", NULL},
    [NATIVE] = {'n', "native", NULL, "native frames too", NULL},
    [CC] = {0, "cc", NULL, "the same as --native", NULL},
    [ASYNC] = {0, "async", NULL,
               "between the frames of an asyncio loop and those of its task: the tasks that wait "
               "for that one",
               NULL},
    [THREADS] = {0, "threads", NULL, "each thread by itself", NULL},
    [SUBPROCESSES] = PRB_OPTION_SUBPROCESSES,
    [RANKS] = PRB_OPTION_RANKS,
    [SOURCE] = {0, "source", "FILE", "heatmap: which file comes first, by the end of its path",
                NULL},
    [FUNCTION] = {'F', "function", NULL, "functions by their first line, not line by line", NULL},
    [NOLINENO] = {0, "nolineno", NULL, "no line numbers", NULL},
    [FULL_FILENAMES] = {0, "full-filenames", NULL, "whole paths of files", NULL},
    [INVERTED] = {0, "inverted", NULL, "flamegraph: innermost frames first", NULL},
    [GROUP] = {0, "group", "WHAT", "processes of one kind together: rank", "rank"},
    {0},
};

struct profiling {
    const struct prb_run *run;
    struct prb_profiler_options sampling;
    struct prb_profile_style style;
    const struct prb_profile_format *format;
    char path[4096];
    double seconds;
    pid_t child;
    bool progress;
    bool json;    /* of a job: for programs, with the coverage */
    int wake;     /* of a job: a signal that ends it */
    double begun; /* s, monotonic: the same */
};

PRB_DEFINE_AUTO_PTR(prb_profiler, struct prb_profiler, prb_profiler_free)
PRB_DEFINE_AUTO_PTR(prb_profile, struct prb_profile, prb_profile_free)

/* ---- what the user wants ---- */

static enum prb_profile_mode mode_of(const struct prb_run *run)
{
    static const struct {
        const char *name;
        enum prb_profile_mode mode;
    } modes[] = {
        {"active", PRB_PROFILE_ACTIVE},
        {"wall", PRB_PROFILE_WALL},
        {"cpu", PRB_PROFILE_CPU},
        {"gil", PRB_PROFILE_GIL},
        {"exception", PRB_PROFILE_EXCEPTION},
    };
    const char *name = run->options[MODE].text;
    for (size_t i = 0; name && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, name) == 0)
            return modes[i].mode;
    return run->options[GIL].count    ? PRB_PROFILE_GIL
           : run->options[IDLE].count ? PRB_PROFILE_WALL
                                      : PRB_PROFILE_ACTIVE;
}

static bool format_at(size_t index, struct prb_file_format *out)
{
    const struct prb_profile_format *format = prb_profile_formats()[index];
    if (format)
        *out = (struct prb_file_format){format->name, format->doc, format->suffixes};
    return format;
}

static bool choose_format(struct profiling *p, struct prb_error *err)
{
    const char *wanted = p->run->options[FORMAT].text, *path = p->run->options[OUTPUT].text;
    if (wanted && strcmp(wanted, "json") == 0 && prb_run_job(p->run)) {
        p->json = true;
        p->format = prb_profile_format_find("collapsed"); /* as that it has no times */
        return !path || strcmp(path, "-") == 0 ||
               prb_cli_fail(err, PRB_USAGE, "", "the format json goes to standard output");
    }
    if (wanted && !(p->format = prb_profile_format_find(wanted)))
        return prb_usage_format(p->run, wanted, err);
    if (!p->format && path) {
        const char *dot = strrchr(prb_base_name(path), '.');
        p->format = prb_profile_format_of_file(path);
        if (!p->format && dot && dot[1])
            return prb_cli_fail(err, PRB_USAGE,
                                "name it by --format: `probing help profile` has all",
                                "no format has files that end in %.40s", dot);
    }
    if (!p->format)
        p->format = prb_profile_formats()[0];
    return true;
}

/* "profile-1234-20260131-120000.svg"; who: the pid, or the job's name. */
static void choose_path_of(struct profiling *p, const char *who)
{
    const char *given = p->run->options[OUTPUT].text, *suffix = p->format->suffixes;
    char when[32] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (given) {
        snprintf(p->path, sizeof p->path, "%s", given);
        return;
    }
    if (localtime_r(&now, &parts))
        strftime(when, sizeof when, "%Y%m%d-%H%M%S", &parts);
    snprintf(p->path, sizeof p->path, "profile-%s-%s%.*s", who, when, (int)strcspn(suffix, " "),
             suffix);
    for (char *at = p->path; (at = strpbrk(at, "/ \n"));)
        *at = '_';
}

static void choose_path(struct profiling *p, pid_t pid)
{
    char who[16];
    snprintf(who, sizeof who, "%d", (int)pid);
    choose_path_of(p, who);
}

static bool read_options(struct profiling *p, struct prb_error *err)
{
    const struct prb_run *run = p->run;
    if (!prb_run_number(run, DURATION, PRB_SECONDS_LEAST, PRB_SECONDS_MOST, &p->seconds, err) ||
        !prb_run_number(run, RATE, 0.001, 1e6, &p->sampling.rate, err) || !choose_format(p, err))
        return false;
    p->sampling.mode = mode_of(run);
    p->sampling.native = run->options[NATIVE].count || run->options[CC].count;
    p->sampling.async = run->options[ASYNC].count;
    p->sampling.subprocesses = run->options[SUBPROCESSES].count;
    p->sampling.ranks = run->options[RANKS].count;
    p->sampling.timeline = p->format->timeline;
    p->sampling.whole_timeline = p->format->whole_timeline;
    p->style = (struct prb_profile_style){
        .threads = run->options[THREADS].count,
        .function = run->options[FUNCTION].count,
        .nolineno = run->options[NOLINENO].count,
        .full_filenames = run->options[FULL_FILENAMES].count,
        .inverted = run->options[INVERTED].count,
        .group_rank = run->options[GROUP].count,
        .source = run->options[SOURCE].text,
    };
    return true;
}

/* ---- a program of our own ---- */

static bool start_program(struct profiling *p, struct prb_error *err)
{
    PRB_AUTO_FREE char **words = calloc(p->run->argument_count + 1, sizeof *words);
    int ends[2];
    if (!words || pipe2(ends, O_CLOEXEC))
        return prb_cli_fail(err, PRB_NOMEM, "", "the program cannot be started");
    for (size_t i = 0; i < p->run->argument_count; i++)
        words[i] = (char *)p->run->arguments[i];
    int failed = 0;
    p->child = fork();
    if (p->child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execvp(words[0], words);
        failed = errno;
        ssize_t n = write(ends[1], &failed, sizeof failed);
        _exit(n == sizeof failed ? 127 : 126);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], &failed, sizeof failed); /* ends when the program has begun */
    close(ends[0]);
    if (p->child < 0 || n == sizeof failed)
        return prb_cli_fail(err, PRB_NOT_FOUND, "", "%s cannot be started: %s", words[0],
                            strerror(p->child < 0 ? errno : failed));
    return true;
}

/* Until Python runs in the program, or in what it starts; what came before has no Python stacks. */
static bool add_child(struct prb_profiler *profiler, const struct profiling *p, int ends,
                      struct prb_error *err)
{
    bool signalled = false;
    double pause = PAUSE_LEAST;
    while (!prb_profiler_add(profiler, p->child, err) && !prb_profiler_follow(profiler, p->child)) {
        if (prb_await_child(p->child, ends, pause, &signalled))
            return prb_cli_fail(err, PRB_NOT_PYTHON, "", "%s ended, and no Python was seen in it",
                                p->run->arguments[0]);
        if (signalled)
            return false;
        pause = pause < PAUSE_MOST ? 1.2 * pause : PAUSE_MOST;
    }
    return true;
}

static void await_child(const struct profiling *p, int ends)
{
    int status = 0;
    prb_await_child(p->child, ends, -1, NULL);
    while (waitpid(p->child, &status, 0) < 0 && errno == EINTR)
        continue;
    *p->run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- sampling ---- */

static bool show_progress(void *context, const struct prb_profile *profile)
{
    const struct profiling *p = context;
    if (!p->progress)
        return true;
    fprintf(stderr, "\r\033[Kprobing: %.1f s", profile->seconds);
    if (p->seconds > 0)
        fprintf(stderr, " of %g", p->seconds);
    fprintf(stderr, ", %llu samples of %zu threads, %llu dropped; Ctrl-C ends it",
            (unsigned long long)profile->samples, profile->thread_count,
            (unsigned long long)profile->dropped);
    return true;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    prb_out_note(text);
}

/* Seconds that processes were sampled, added up: they come and go. */
static double process_seconds(const struct prb_profile *profile)
{
    double sum = 0;
    for (size_t i = 0; i < profile->process_count; i++)
        sum += profile->processes[i].end - profile->processes[i].start;
    return profile->process_count > 1 ? sum : profile->seconds;
}

/* What people need of it: what is in the profile, and what is not. */
static void report_samples(const struct prb_profile *profile)
{
    char missing[120] = "";
    if (profile->skipped || profile->failed)
        snprintf(missing, sizeof missing, ", %llu skipped, %llu failed",
                 (unsigned long long)profile->skipped, (unsigned long long)profile->failed);
    say("%llu samples in %.1f s, %llu dropped%s", (unsigned long long)profile->samples,
        profile->seconds, (unsigned long long)profile->dropped, missing);
}

static void report_details(const struct prb_profile *profile)
{
    double seconds = process_seconds(profile);
    say("%llu samples in %.1f s (%.0f a second), %llu of threads; %llu dropped, %llu readings "
        "rejected, %llu skipped, %llu failed; late %.2f ms, at worst %.1f ms",
        (unsigned long long)profile->samples, profile->seconds,
        seconds > 0 ? (double)profile->samples / seconds : 0,
        (unsigned long long)profile->thread_samples, (unsigned long long)profile->dropped,
        (unsigned long long)profile->rejected, (unsigned long long)profile->skipped,
        (unsigned long long)profile->failed, profile->late * 1e3, profile->latest * 1e3);
    if (profile->native)
        say("native frames: no thread was stopped for longer than %.3f ms; %llu stacks of threads "
            "are of two moments",
            profile->longest_stop * 1e3, (unsigned long long)profile->moved);
}

static void report(const struct prb_profile *profile, bool verbose)
{
    if (verbose)
        report_details(profile);
    else
        report_samples(profile);
    if ((double)profile->skipped > 0.05 * profile->rate * profile->seconds)
        say("the wanted rate of %g a second was not reached", profile->rate);
    if (profile->warning)
        prb_out_note(profile->warning);
}

static bool write_profile(const struct profiling *p, const struct prb_profile *profile,
                          struct prb_error *err)
{
    char elsewhere[4096];
    if (!prb_profile_write(profile, p->format, &p->style, p->path, elsewhere, sizeof elsewhere,
                           err))
        return false;
    if (elsewhere[0])
        return prb_cli_fail(err, PRB_IO, "the profile is whole there; move it when there is room",
                            "%s could not be written; the profile is in %s", p->path, elsewhere);
    if (strcmp(p->path, "-") != 0)
        say("%s: %s", p->path, p->format->doc);
    return true;
}

static bool sample(struct profiling *p, struct prb_profiler *profiler, int wake,
                   struct prb_error *err)
{
    bool ok = prb_profiler_run(profiler, p->seconds, wake, show_progress, p, err);
    if (p->progress)
        fputs("\r\033[K", stderr);
    if (!ok)
        return false;
    PRB_AUTO(prb_profile) struct prb_profile *profile = prb_profiler_finish(profiler);
    report(profile, p->run->verbose);
    if (!profile->weight_count)
        say(profile->mode == PRB_PROFILE_WALL
                ? "no stack was seen"
                : "all threads waited in every sample: --idle shows where");
    return write_profile(p, profile, err);
}

static bool is_of_memory(const struct prb_run *run)
{
    const char *name = run->options[MODE].text;
    return name && strcmp(name, "memory") == 0;
}

/* Options that mean nothing there. */
static bool check_memory(const struct prb_run *run, struct prb_error *err)
{
    static const int others[] = {RATE, GIL, IDLE, NATIVE, CC, ASYNC, SUBPROCESSES, RANKS};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (run->options[others[i]].count)
            return prb_usage(run, err, "--mode memory goes without --%s", options[others[i]].name);
    if (run->argument_count)
        return prb_usage(run, err,
                         "--mode memory is of a process that runs: start the program "
                         "first, or with PROBING=1 PROBING_MEMORY_PROFILE=on");
    return true;
}

static bool run_memory(struct profiling *p, struct prb_error *err)
{
    const char *socket = NULL;
    pid_t pid = 0;
    if (!check_memory(p->run, err) || !read_options(p, err))
        return false;
    if (!prb_run_process(p->run, &pid, &socket, NULL))
        pid = 0; /* a core */
    choose_path(p, pid ? pid : getpid());
    if (!prb_profile_check_output(p->path, err))
        return false;
    PRB_AUTO_FD int wake = prb_take_ends();
    PRB_AUTO(prb_profile)
    struct prb_profile *profile =
        prb_run_memory_profile(p->run, p->seconds, p->run->options[LIVE].count, wake, err);
    if (!profile)
        return false;
    prb_memory_report(profile);
    return write_profile(p, profile, err);
}

/* ---- what is sampled already ---- */

/* Whether nothing was asked for that only new samples have. */
static bool may_be_kept(const struct profiling *p)
{
    static const int others[] = {DURATION, RATE, NATIVE, CC, ASYNC, SUBPROCESSES, RANKS};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (p->run->options[others[i]].count)
            return false;
    return !p->run->argument_count && prb_run_has_target(p->run) && !prb_run_job(p->run) &&
           !p->format->timeline && p->sampling.mode <= PRB_PROFILE_GIL &&
           p->sampling.mode != PRB_PROFILE_CPU;
}

/* False and no error: nothing is kept of it, and why it cannot be opened is said by who samples it. */
static bool write_kept(struct profiling *p, struct prb_error *err)
{
    struct prb_error ignored = {0};
    PRB_AUTO(prb_profile)
    struct prb_profile *profile = prb_run_kept_profile(p->run, p->sampling.mode, &ignored);
    if (!profile)
        return false;
    choose_path(p, profile->process_count ? profile->processes[0].pid : getpid());
    prb_kept_report(profile);
    return prb_profile_check_output(p->path, err) && write_profile(p, profile, err);
}

/* ---- the ranks of a job ---- */

#define ROUND 5.0 /* s that ranks sample until they tell */

static bool job_goes_on(void *context)
{
    const struct profiling *p = context;
    struct pollfd wake = {.fd = p->wake, .events = POLLIN};
    if (p->progress)
        fprintf(stderr, "\r\033[Kprobing: %.1f s; Ctrl-C ends it", prb_clock_s() - p->begun);
    return poll(&wake, 1, 0) <= 0;
}

/* Round by round, so that what ends it loses one of them. */
static bool sample_job(const struct profiling *p, struct prb_job_sampling *sampling,
                       struct prb_error *err)
{
    double left = p->seconds;
    while (!sampling->ended && !sampling->silent) {
        if (!prb_job_sample(sampling, left, err))
            return false;
        if (p->seconds > 0 && (left = p->seconds - (prb_clock_s() - p->begun)) < 0.1)
            break;
    }
    return sampling->sum.profile ||
           prb_cli_fail(err, PRB_TIMEOUT, "", "ended before any rank had told what it saw");
}

static bool write_job(struct profiling *p, struct prb_job_sampling *sampling, struct prb_error *err)
{
    struct prb_profile *profile = sampling->sum.profile;
    if (p->progress)
        fputs("\r\033[K", stderr);
    if (!prb_run_covered(p->run, &sampling->coverage, err))
        return false;
    if (p->json)
        return prb_job_profile_json(sampling, stdout, err);
    /* Each rank has a clock of its own. */
    profile->skipped /= profile->process_count ? profile->process_count : 1;
    report(profile, p->run->verbose);
    prb_job_note_uneven(profile);
    if (!write_profile(p, profile, err))
        return false;
    prb_out_coverage(&sampling->coverage);
    return true;
}

static bool run_job(struct profiling *p, struct prb_error *err)
{
    const struct prb_run *run = p->run;
    if (run->options[RANKS].count)
        return prb_usage(run, err, "-t @JOB is all ranks: leave out --ranks");
    if (p->format->timeline)
        return prb_cli_fail(err, PRB_USAGE, "one rank of this host: -t @JOB:0",
                            "the format %s shows when, and ranks tell how much", p->format->name);
    p->style.together = !p->style.group_rank;
    PRB_AUTO_FD int wake = p->wake = prb_take_ends();
    PRB_AUTO(prb_job_sampling)
    struct prb_job_sampling sampling = {
        .run = run,
        .how = &p->sampling,
        .longest = p->seconds > 0 && p->seconds < ROUND ? p->seconds : ROUND,
        .go_on = job_goes_on,
        .context = p,
    };
    p->begun = prb_clock_s();
    if (!prb_job_sampling_begin(&sampling, err))
        return false;
    choose_path_of(p, prb_fleet_info(sampling.fleet)->job);
    if (!p->json && !prb_profile_check_output(p->path, err))
        return false;
    p->begun = prb_clock_s();
    return sample_job(p, &sampling, err) && write_job(p, &sampling, err);
}

/* One rank, and a format that needs a timeline: as any process of this host. */
static bool is_one_rank(const struct prb_run *run)
{
    const char *colon = strchr(prb_run_job(run), ':');
    return colon && prb_word_is_pid(colon + 1);
}

static bool run_profile(const struct prb_run *run, struct prb_error *err)
{
    struct profiling p = {.run = run, .progress = isatty(STDERR_FILENO)};
    const char *socket = NULL;
    pid_t pid = 0;
    bool program = run->argument_count > 0, ranks = run->options[RANKS].count;
    bool named = prb_run_has_target(run);
    if (is_of_memory(run))
        return run_memory(&p, err);
    if (run->options[LIVE].count)
        return prb_usage(run, err, "--live goes with --mode memory");
    if (program && (named || ranks))
        return prb_usage(run, err, "give a target or a program to start, not both");
    if (!read_options(&p, err))
        return false;
    if (may_be_kept(&p) && (write_kept(&p, err) || err->code))
        return !err->code;
    if (prb_run_job(run) && !(p.format->timeline && is_one_rank(run)))
        return run_job(&p, err);
    if ((!program && (named || !ranks) && !prb_run_process_or_job(run, ranks, &pid, &socket, err)))
        return false;
    choose_path(&p, program ? getpid() : pid);
    if (!prb_profile_check_output(p.path, err))
        return false;
    PRB_AUTO(prb_profiler) struct prb_profiler *profiler = prb_profiler_new(&p.sampling, err);
    PRB_AUTO_FD int wake = prb_take_ends();
    if (!profiler || (program && !start_program(&p, err)))
        return false;
    bool ok = program ? add_child(profiler, &p, wake, err)
              : ranks ? prb_run_ranks(profiler, pid, err)
                      : prb_profiler_add(profiler, pid, err) || prb_profiler_follow(profiler, pid);
    ok = ok && sample(&p, profiler, wake, err);
    if (program)
        await_child(&p, wake);
    return ok;
}

const struct prb_command prb_command_profile = {
    .name = "profile",
    .aliases = "record flamegraph performance perf p",
    .summary = "where the time goes, sampled from outside",
    .arguments = "[PROGRAM [ARGUMENT]...]",
    .arguments_min = 0,
    .arguments_max = PRB_WORDS_MAX,
    .program = true,
    .target = PRB_USES_TARGET_IF_GIVEN,
    .description =
        "Looks at all threads of the target many times a second and adds up where they are; "
        "nothing is stopped, and no stack counts that was not read twice the same. Given a "
        "program in place of a target it starts that, and ends with its status; -d ends the "
        "sampling, not the program.\n\n"
        "--format or the file's name says which format. How many stacks were dropped, and how "
        "late or skipped samples were, is said at the end and in the file.\n\n"
        "With --mode memory, bytes take the place of time: the target's probe samples allocations "
        "of "
        "Python, native code and torch. Where it does so already (config "
        "probing.memory.profile=on), and -d is not given, the profile is of all since then.\n\n"
        "Where the collector samples the target (config probing.pprof=on, inject -P), the profile "
        "is of all since then, also when the target has ended; what needs new samples, as -d, -r "
        "or --native, takes them.\n\n"
        "With -t @JOB all ranks sample at the same time, on their hosts; the result is one tree, "
        "with --group rank a row for each rank. A function that one rank is in far more or less "
        "than most is named. Formats with a timeline need one rank of this host; json, for "
        "programs, goes to standard output and has the coverage.\n\n"
        "With --native a thread that runs is stopped alone, for the copy of its registers and "
        "stack bytes only; one that waits is not.",
    .options = options,
    .format = format_at,
    .examples = "probing 1234 profile -d 5 -o train.svg\n"
                "probing 1234 record --native --idle -r 200 -f speedscope -o train.json\n"
                "probing 1234 profile --mode memory --live -d 60 -o kept.svg\n"
                "probing -t @ profile -d 10 -o job.svg  # all ranks of the job\n"
                "probing profile -o run.svg -- python train.py --lr 0.001\n",
    .run = run_profile,
};
