/* probing hang: does a process or a job hang, who is to blame, who waits. */
#include "fleet/hang.h"

#include <jansson.h>
#include <string.h>

#include "cli/fleet/job.h"
#include "cli/options.h"
#include "cli/print/out.h"

#define EVERY 2.0
#define EVERY_LEAST 0.05
#define EVERY_MOST 600.0
#define LOOKING 2.5 /* s that a view may take */
#define VIEWS 2
#define VIEWS_MOST 100
#define FRAMES_SHOWN 6 /* in a line */

enum { FORMAT, EVERY_OPTION, VIEWS_OPTION, DEEP };

struct looking {
    double every;
    int views;
};

static const struct prb_option options[] = {
    [FORMAT] = {'f', "format", "FORMAT", "text (the default) or json", "text json"},
    [EVERY_OPTION] = {0, "every", "SECONDS", "between two views, 2 at first", NULL},
    [VIEWS_OPTION] = {0, "views", "N", "how often each rank is looked at, 2 at first", NULL},
    [DEEP] =
        {0, "deep", NULL,
         "load a probe where there is none, for the Flight Recorder of torch.distributed; agents "
         "of other hosts must allow control",
         NULL},
    {0},
};

static void label(const char *name, bool first)
{
    if (first)
        prb_out_style(stdout, PRB_STYLE_TITLE);
    printf("%-9s", first ? name : "");
    prb_out_style(stdout, PRB_STYLE_PLAIN);
}

static void print_who(const struct prb_hang_part *part)
{
    const struct prb_hang_rank *rank = part->example;
    PRB_AUTO_FREE char *ranks = prb_rank_set_text(&part->ranks);
    bool one = prb_rank_set_size(&part->ranks) == 1;
    if (rank->rank < 0)
        printf("process %d ", (int)rank->pid);
    else
        printf("%s %s ", one ? "rank" : "ranks", ranks ? ranks : "?");
    if (one && rank->pid > 0) {
        fputc('(', stdout);
        prb_out_text(stdout, rank->host);
        printf("%spid %d) ", *rank->host ? ", " : "", (int)rank->pid);
    }
}

/* "read_shard (data.py:20) < load_batch (train.py:16) < …, in clock_nanosleep" */
static void print_frames(const struct prb_hang_rank *rank)
{
    for (size_t i = 0; i < rank->frame_count && i < FRAMES_SHOWN; i++) {
        fputs(i ? " < " : "", stdout);
        prb_out_text(stdout, rank->frames[i].name);
        fputs(" (", stdout);
        prb_out_text(stdout, rank->frames[i].file);
        printf(":%d)", rank->frames[i].line);
    }
    if (rank->frame_count > FRAMES_SHOWN)
        fputs(" < …", stdout);
    if (*rank->inside) {
        fputs(", in ", stdout);
        prb_out_cut(stdout, rank->inside, strlen(rank->inside), 60);
    }
    if (*rank->wait_channel && strchr("DTt", rank->os_state)) {
        fputs(", in the kernel's ", stdout);
        prb_out_text(stdout, rank->wait_channel);
    }
}

static void print_parts(const char *name, const struct prb_hang_parts *parts, bool frames)
{
    for (size_t i = 0; i < parts->count; i++) {
        label(name, i == 0);
        print_who(&parts->items[i]);
        prb_out_text(stdout, parts->items[i].text);
        fputc('\n', stdout);
        if (!frames || !parts->items[i].example->frame_count)
            continue;
        label("", false);
        print_frames(parts->items[i].example);
        fputc('\n', stdout);
    }
}

static void print_views(int views, const char *behind)
{
    if (views > 2)
        printf("%d views%s", views, behind);
    else
        printf("two views%s", behind);
}

static void print_evidence(const struct prb_hang *hang, int views, size_t ranks)
{
    label("evidence", true);
    fputs("stacks from outside, ", stdout);
    print_views(views, "");
    if (hang->recorders && ranks)
        printf("; Flight Recorder of %zu of %zu ranks", hang->recorders, ranks);
    else if (ranks)
        fputs("; no Flight Recorder was read: no rank has a probe (--deep loads one)", stdout);
    fputc('\n', stdout);
}

/* What to do next, for the first cause. */
static void print_next(const struct prb_run *run, const struct prb_hang *hang)
{
    const char *job = prb_run_job(run);
    char target[200] = "", next[320];
    if (!hang->cause.count)
        return;
    if (job)
        snprintf(target, sizeof target, "%.*s", (int)prb_fleet_job_length(job), job);
    prb_hang_next(hang, &hang->cause.items[0], job ? target : NULL, next, sizeof next);
    label("next", true);
    prb_out_text(stdout, next);
    fputc('\n', stdout);
}

static void print_text(const struct prb_run *run, const struct prb_fleet_info *info,
                       const struct prb_hang *hang, int views, const struct prb_coverage *coverage)
{
    char since[80];
    if (info) {
        unsigned answered = prb_coverage_in(coverage, PRB_COVERAGE_ANSWERED, NULL);
        prb_out_text(stdout, info->job);
        printf(": %zu rank%s on %u host%s, %s", coverage->count, coverage->count == 1 ? "" : "s",
               info->hosts, info->hosts == 1 ? "" : "s",
               answered == coverage->count ? "all answered\n" : "");
        if (answered != coverage->count)
            printf("%u answered\n", answered);
    }
    print_views(views, views > 2 ? " in " : ", ");
    printf("%.1f s%s: %s; ", hang->span, views > 2 ? "" : " apart", hang->summary);
    prb_hang_since_text(hang, since, sizeof since);
    puts(hang->hung ? since : "not hung");
    print_parts("cause", &hang->cause, true);
    print_parts("waiting", &hang->waiting, false);
    print_parts("slow", &hang->slow, true);
    print_evidence(hang, views, info ? coverage->count : 0);
    print_next(run, hang);
    if (!hang->hung && hang->slow.count) {
        label("next", true);
        puts("the same again, with --every 10");
    }
}

static bool print(const struct prb_run *run, const struct prb_fleet_info *info,
                  const struct prb_hang *hang, int views, const struct prb_coverage *coverage)
{
    const char *format = run->options[FORMAT].text;
    if (format && strcmp(format, "json") == 0) {
        prb_hang_json(hang, coverage, stdout);
        return true;
    }
    print_text(run, info, hang, views, coverage);
    if (coverage)
        prb_out_coverage(coverage);
    return true;
}

static bool of_job(const struct prb_run *run, const struct looking *how, struct prb_error *err)
{
    PRB_AUTO(prb_fleet)
    struct prb_fleet *fleet =
        prb_run_open_job_for(run, (how->views - 1) * how->every * 1.25 + how->views * LOOKING, err);
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(prb_hang) struct prb_hang hang = {0};
    const char *kind = run->options[DEEP].count ? "hang_deep" : "hang";
    char args[80];
    snprintf(args, sizeof args, "{\"every\": %.3f, \"views\": %d}", how->every, how->views);
    if (!fleet || !prb_fleet_ask(fleet, kind, args, &hang, &coverage, err) ||
        !prb_run_covered(run, &coverage, err) || !prb_hang_judge(&hang, &coverage, err))
        return false;
    return print(run, prb_fleet_info(fleet), &hang, how->views, &coverage);
}

static bool run_hang(const struct prb_run *run, struct prb_error *err)
{
    double every = EVERY, views = VIEWS;
    pid_t pid;
    const char *socket;
    PRB_AUTO(prb_hang) struct prb_hang hang = {0};
    if (!prb_run_number(run, EVERY_OPTION, EVERY_LEAST, EVERY_MOST, &every, err) ||
        !prb_run_number(run, VIEWS_OPTION, 2, VIEWS_MOST, &views, err))
        return false;
    const struct looking how = {.every = every, .views = (int)views};
    if (prb_run_job(run))
        return of_job(run, &how, err);
    if (run->options[DEEP].count)
        return prb_usage(run, err, "--deep is for the ranks of a job: -t @JOB");
    if (!prb_run_process(run, &pid, &socket, err))
        return false;
    if (socket)
        return prb_usage(run, err, "hang needs a process id or a job");
    return prb_hang_look(pid, every, how.views, &hang, err) &&
           print(run, NULL, &hang, how.views, NULL);
}

const struct prb_command prb_command_hang = {
    .name = "hang",
    .aliases = "",
    .summary = "say whether a job hangs, who is to blame, who waits",
    .arguments = "",
    .target = PRB_USES_TARGET,
    .description =
        "Looks at each rank twice, some seconds apart, from outside: stacks with native frames, "
        "CPU "
        "time, wake-ups, local variables, the state of the process, and, where a rank has a probe, "
        "the Flight Recorder of torch.distributed. What has moved is not hung: the ranks that wait "
        "for others have passed a collective, or those that they wait for still compute.\n\n"
        "Else the cause is, in this order: a rank that is gone, missing or on a silent host; one "
        "that is stopped or waits for a disk; the one that the recorders' sequence numbers show "
        "all "
        "others to wait for; calls of a collective that do not match; ranks in no collective while "
        "others wait in one; ranks in another collective than most.\n\n"
        "The exit status is 0 when there is a verdict, hung or not, and 15 when not all ranks "
        "answered.",
    .options = options,
    .examples = "probing -t @ hang  # the job on this host\n"
                "probing 12345 hang --every 10  # one process, two views ten seconds apart\n"
                "probing -t @ hang -f json  # for programs\n",
    .run = run_hang,
};
