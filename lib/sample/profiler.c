/*
 * The profiler's clock: when to sample, and for how long (probing.h, "profiles").
 *
 * Each sample has its own period of the clock, and its moment is random within that period.  Periods
 * are absolute, so that delays do not add up; random moments are not in step with anything that the
 * target does at regular times.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/syscalls.h"
#include "sample/children.h"
#include "sample/process.h"

#define DEFAULT_RATE 100
#define RATE_MAX 1e6
#define PROGRESS_NS 100000000
#define FAILURES_MAX 100 /* failed samples of a process in a row: it is given up */

struct prb_profiler {
    struct prb_profiler_options options;
    struct prb_profile_box *box;
    struct prb_sampled_process **processes;
    size_t process_count, process_cap;
    uint64_t start;   /* monotonic ns */
    uint64_t paused;  /* ns in which no run was under way */
    uint64_t stopped; /* when the last run ended */
    uint64_t random;
    uint64_t looked; /* when the run last looked for what wakes it, but for the clock */
    struct prb_children children;
    int followed; /* pidfd of a process that is followed, not sampled itself; -1: none */
    uint64_t late_count;
    double late_sum;
    struct prb_error last; /* why the last sample failed */
};

static uint64_t thread_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Since the profile's start, pauses left out. */
static uint64_t profile_now(const struct prb_profiler *profiler)
{
    return prb_clock_ns() - profiler->start - profiler->paused;
}

struct prb_profiler *prb_profiler_new(const struct prb_profiler_options *options,
                                      struct prb_error *err)
{
    static const struct prb_profiler_options defaults;
    struct prb_profiler *profiler = calloc(1, sizeof *profiler);
    if (!profiler)
        return PRB_NULL(prb_nomem(err));
    profiler->followed = -1;
    profiler->options = options ? *options : defaults;
    profiler->children.of_sampled = profiler->options.subprocesses;
    if (profiler->options.rate == 0)
        profiler->options.rate = DEFAULT_RATE;
    double rate = profiler->options.rate;
    bool ok = (isfinite(rate) && rate > 0 && rate <= RATE_MAX) ||
              prb_fail(err, PRB_USAGE, "a rate of %g samples a second", rate);
    if (!ok || !(profiler->box = prb_profile_new(err))) {
        free(profiler);
        return NULL;
    }
    struct prb_profile *profile = &profiler->box->profile;
    profile->rate = rate;
    profile->mode = profiler->options.mode;
    profile->native = profiler->options.native;
    profile->start = prb_clock_epoch_s();
    profiler->box->timeline.wanted = profiler->options.timeline;
    profiler->start = profiler->stopped = prb_clock_ns();
    profiler->random = profiler->start | 1;
    return profiler;
}

void prb_profiler_free(struct prb_profiler *profiler)
{
    if (!profiler)
        return;
    for (size_t i = 0; i < profiler->process_count; i++)
        prb_sampled_process_free(profiler->processes[i]);
    free(profiler->processes);
    prb_children_deinit(&profiler->children);
    if (profiler->followed >= 0)
        close(profiler->followed);
    if (profiler->box)
        prb_profile_free(&profiler->box->profile);
    free(profiler);
}

bool prb_profiler_add(struct prb_profiler *profiler, pid_t pid, struct prb_error *err)
{
    PRB_AUTO(prb_sampled_process)
    struct prb_sampled_process *process = prb_sampled_process_new(
        profiler->box, &profiler->options, pid, 1e-9 * (double)profile_now(profiler), err);
    if (!process)
        return false;
    if (!PRB_GROW(profiler->processes, profiler->process_count, profiler->process_cap))
        return prb_nomem(err);
    profiler->processes[profiler->process_count++] = PRB_STEAL(process);
    prb_children_add(&profiler->children, pid, true, false);
    return true;
}

static bool add_child(void *context, pid_t pid) { return prb_profiler_add(context, pid, NULL); }

size_t prb_profiler_follow(struct prb_profiler *profiler, pid_t pid)
{
    if ((profiler->options.subprocesses || profiler->options.ranks) && profiler->followed < 0)
        profiler->followed = (int)syscall(SYS_pidfd_open, pid, 0);
    if (profiler->followed >= 0) {
        prb_children_add(&profiler->children, pid, false, profiler->options.ranks);
        prb_children_search(&profiler->children, profile_now(profiler), add_child, profiler);
    }
    return profiler->process_count;
}

size_t prb_profiler_alive(const struct prb_profiler *profiler)
{
    size_t alive = 0;
    for (size_t i = 0; i < profiler->process_count; i++)
        alive += !profiler->processes[i]->ended;
    return alive;
}

const struct prb_profile *prb_profiler_profile(const struct prb_profiler *profiler)
{
    for (size_t i = 0; i < profiler->process_count; i++)
        prb_sampled_process_catch_up(profiler->processes[i]);
    return &profiler->box->profile;
}

/* ---- one sample ---- */

static void end_process(struct prb_profiler *profiler, struct prb_sampled_process *process,
                        uint64_t now)
{
    prb_sampled_process_close(process, now);
    process->ended = true;
    profiler->box->processes[process->index].ended = true;
}

/* xorshift64*: [0, 1) */
static double at_random(struct prb_profiler *profiler)
{
    uint64_t x = profiler->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    profiler->random = x;
    return (double)(x * 0x2545f4914f6cdd1du >> 11) * 0x1p-53;
}

static bool ended(int pidfd)
{
    struct pollfd fd = {.fd = pidfd, .events = POLLIN};
    return pidfd < 0 || poll(&fd, 1, 0) > 0;
}

static bool process_gone(const struct prb_sampled_process *process)
{
    return (process->pidfd >= 0 && ended(process->pidfd)) ||
           !prb_proc_check(process->target->proc, NULL);
}

static bool sample_all(struct prb_profiler *profiler)
{
    struct prb_profile *profile = &profiler->box->profile;
    bool any = false;
    if (profiler->options.subprocesses || profiler->options.ranks)
        prb_children_search(&profiler->children, profile_now(profiler), add_child, profiler);
    for (size_t i = 0; i < profiler->process_count; i++) {
        struct prb_sampled_process *process = profiler->processes[i];
        const struct prb_moment moment = {
            .now = profile_now(profiler),
            .period = (uint64_t)(1e9 / profiler->options.rate),
        };
        if (process->ended)
            continue;
        if (prb_sampled_process_sample(process, &moment, &profiler->last)) {
            process->failures = 0;
            any = true;
            continue;
        }
        profile->failed++;
        if (++process->failures > FAILURES_MAX || process_gone(process))
            end_process(profiler, process, moment.now);
    }
    profile->seconds = 1e-9 * (double)profile_now(profiler);
    return any;
}

/* The CPU time of the calling thread since then (ns) was for sampling. */
static void add_cpu(struct prb_profiler *profiler, uint64_t since)
{
    profiler->box->profile.cpu += 1e-9 * (double)(thread_cpu_ns() - since);
}

bool prb_profiler_sample(struct prb_profiler *profiler, struct prb_error *err)
{
    uint64_t cpu = thread_cpu_ns();
    bool any = sample_all(profiler);
    add_cpu(profiler, cpu);
    if (!any && err)
        *err = profiler->last;
    return any;
}

/* ---- the clock ---- */

struct clock {
    uint64_t period, start; /* ns; of the profile's time */
    uint64_t slot;          /* the next sample's period */
    uint64_t due;           /* and its moment within that */
    uint64_t end, progress;
    int wake;
};

static void next_slot(struct prb_profiler *profiler, struct clock *clock)
{
    struct prb_profile *profile = &profiler->box->profile;
    uint64_t now = profile_now(profiler), slot = (now - clock->start) / clock->period;
    clock->slot++;
    if (slot > clock->slot) {
        profile->skipped += slot - clock->slot;
        clock->slot = slot;
    }
    clock->due = clock->start + clock->slot * clock->period +
                 (uint64_t)(at_random(profiler) * (double)clock->period);
}

static void note_lateness(struct prb_profiler *profiler, const struct clock *clock, uint64_t now)
{
    struct prb_profile *profile = &profiler->box->profile;
    double late = now > clock->due ? 1e-9 * (double)(now - clock->due) : 0;
    profiler->late_sum += late;
    profile->late = profiler->late_sum / (double)++profiler->late_count;
    if (late > profile->latest)
        profile->latest = late;
}

enum woken { BY_TIME, BY_CALLER, BY_PROCESS };

/* The pidfd of the first live process: waiting for it lets the end of the last one end the run. */
static int first_alive(const struct prb_profiler *profiler)
{
    for (size_t i = 0; i < profiler->process_count; i++)
        if (!profiler->processes[i]->ended)
            return profiler->processes[i]->pidfd;
    return profiler->followed;
}

/* A shorter sleep lasts longer than it says: the kernel's own work takes that long. */
#define SLEEP_LEAST_NS 20000
#define LOOK_NS                                                                                    \
    1000000 /* with no sleep between samples: look so often for the caller and the processes */

static enum woken sleep_until(struct prb_profiler *profiler, uint64_t until, int wake)
{
    struct pollfd fds[] = {{.fd = wake, .events = POLLIN},
                           {.fd = first_alive(profiler), .events = POLLIN}};
    uint64_t now = profile_now(profiler), rest = until > now ? until - now : 0;
    if (rest < SLEEP_LEAST_NS)
        rest = 0;
    const struct timespec time = prb_clock_timespec_ns(rest);
    if (rest || now >= profiler->looked + LOOK_NS) {
        profiler->looked = now;
        ppoll(fds, 2, &time, NULL);
    }
    while (rest == 0 && !fds[0].revents && profile_now(profiler) < until)
        continue;
    return fds[0].revents ? BY_CALLER : fds[1].revents ? BY_PROCESS : BY_TIME;
}

static void reap(struct prb_profiler *profiler)
{
    for (size_t i = 0; i < profiler->process_count; i++)
        if (!profiler->processes[i]->ended && process_gone(profiler->processes[i]))
            end_process(profiler, profiler->processes[i], profile_now(profiler));
}

static bool loop(struct prb_profiler *profiler, struct clock *clock,
                 prb_profile_progress_fn *progress, void *context)
{
    bool any = false;
    while (prb_profiler_alive(profiler) || !ended(profiler->followed)) {
        uint64_t until = clock->due < clock->end ? clock->due : clock->end;
        enum woken woken = sleep_until(profiler, until, clock->wake);
        uint64_t now = profile_now(profiler);
        if (woken == BY_CALLER || (clock->end && now >= clock->end))
            break;
        if (woken == BY_PROCESS) {
            reap(profiler);
            continue;
        }
        note_lateness(profiler, clock, now);
        any |= sample_all(profiler);
        next_slot(profiler, clock);
        if (progress && now >= clock->progress) {
            clock->progress = now + PROGRESS_NS;
            if (!progress(context, prb_profiler_profile(profiler)))
                break;
        }
    }
    return any;
}

/* A thread's sleeps may last up to 50 us longer unless it asks for less (prctl(2)): set how many
 * ns, and return what was set before. */
static int exact_sleeps(int ns)
{
    int before = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, (unsigned long)ns);
    return before;
}

bool prb_profiler_run(struct prb_profiler *profiler, double seconds, int wake,
                      prb_profile_progress_fn *progress, void *context, struct prb_error *err)
{
    profiler->paused += prb_clock_ns() - profiler->stopped;
    struct clock clock = {.period = (uint64_t)(1e9 / profiler->options.rate), .wake = wake};
    clock.start = clock.due = profile_now(profiler);
    clock.end = seconds > 0 ? clock.start + (uint64_t)(seconds * 1e9) : UINT64_MAX;
    int slack = exact_sleeps(1);
    uint64_t cpu = thread_cpu_ns();
    bool any = loop(profiler, &clock, progress, context);
    add_cpu(profiler, cpu);
    if (slack > 0)
        exact_sleeps(slack);
    profiler->stopped = prb_clock_ns();
    profiler->box->profile.seconds = 1e-9 * (double)profile_now(profiler);
    if (!any && !profiler->box->profile.samples && profiler->last.code) {
        if (err)
            *err = profiler->last;
        return false;
    }
    return true;
}

struct prb_profile *prb_profiler_finish(struct prb_profiler *profiler)
{
    for (size_t i = 0; i < profiler->process_count; i++)
        if (!profiler->processes[i]->ended)
            prb_sampled_process_close(profiler->processes[i], profile_now(profiler));
    struct prb_profile_box *box = PRB_STEAL(profiler->box);
    if (box->timeline.lost)
        box->profile.warning = "there was no room on the disk for the timeline: its end is missing";
    return &box->profile;
}
