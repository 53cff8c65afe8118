/*
 * Take many samples of a live target through lib/py/sampler.h and say in one line of JSON what came:
 * how many, what they cost, and how many stacks of tests/targets/alternate.py are impossible
 * (functions of both chains, or a level left out).
 *
 *     sample PID [--seconds S] [--samples N] [--rate HZ] [--tries N] [--stops N]
 *
 * --tries 1 reads once and checks nothing: what a sampler without verification would give.
 * --stops N: every N samples the target is stopped (SIGSTOP) and a sampler that saw nothing before
 * looks too: "differing" counts the threads that the two do not tell alike.
 */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "py/sampler.h"

struct options {
    pid_t pid;
    double seconds, rate;
    uint64_t samples, stops;
    unsigned tries;
};

struct counts {
    uint64_t samples, threads, frames, tries, rejected, unstable, broken, checked, impossible;
    uint64_t stops, compared, differing;
    double reading, cpu; /* seconds within prb_sampler_take, and processor time of them */
    double slowest;
};

static double clock_seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double now(void) { return clock_seconds(CLOCK_MONOTONIC); }

/* Chain and level of a function's name: "a7" is a, 7. */
static bool level_of(const char *name, char *chain, int *level)
{
    if ((*name != 'a' && *name != 'b') || !isdigit((unsigned char)name[1]))
        return false;
    *chain = *name;
    *level = atoi(name + 1);
    return true;
}

/* Whether the stack can exist: one chain, every level from the innermost out to 0. */
static bool possible(struct prb_py *py, const struct prb_raw_thread *thread)
{
    char chain = 0, first = 0;
    int level = 0, last = -1;
    for (size_t i = 0; i < thread->frame_count; i++) {
        if (!thread->frames[i].code)
            continue;
        const struct prb_code_object *code = prb_code_get(py, thread->frames[i].code, false, NULL);
        if (!code)
            return false;
        if (!level_of(code->name, &chain, &level))
            continue;
        if ((first && chain != first) || (last >= 0 && level != last - 1))
            return false;
        first = chain;
        last = level;
    }
    return last <= 0; /* -1: between two calls */
}

static void count(struct prb_py *py, const struct prb_raw_stacks *stacks, struct counts *counts)
{
    counts->samples++;
    counts->tries += stacks->tries;
    counts->rejected += stacks->rejected;
    for (size_t i = 0; i < stacks->thread_count; i++) {
        const struct prb_raw_thread *thread = &stacks->threads[i];
        counts->threads++;
        counts->frames += thread->frame_count;
        counts->unstable += thread->unstable;
        counts->broken += !thread->unstable && thread->broken.why;
        if (thread->unstable || thread->broken.why)
            continue;
        counts->checked++;
        counts->impossible += !possible(py, thread);
    }
}

static bool alike(const struct prb_raw_thread *a, const struct prb_raw_thread *b)
{
    bool same = a->tstate == b->tstate && a->frame_count == b->frame_count;
    for (size_t i = 0; same && i < a->frame_count; i++)
        same = a->frames[i].frame == b->frames[i].frame && a->frames[i].code == b->frames[i].code &&
               a->frames[i].instruction == b->frames[i].instruction;
    return same;
}

/* SIGSTOP takes effect in each thread by itself: until none runs any more. */
static bool stop(struct prb_proc *proc, struct prb_error *err)
{
    kill(prb_proc_pid(proc), SIGSTOP);
    for (bool running = true; running;) {
        PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
        if (!prb_proc_tasks(proc, &tasks, err))
            return false;
        running = false;
        for (size_t i = 0; i < tasks.count; i++)
            running |= tasks.items[i].state != 'T';
    }
    return true;
}

/* What sampler says of the stopped target, and what one says that saw nothing before. */
static bool compare(struct prb_py *py, struct prb_proc *proc, struct prb_sampler *sampler,
                    struct counts *counts, struct prb_error *err)
{
    PRB_AUTO(prb_sampler) struct prb_sampler *fresh = prb_sampler_new(py, proc, err);
    const struct prb_raw_stacks *known, *seen;
    bool ok = fresh && stop(proc, err) && (known = prb_sampler_take(sampler, 0, err)) &&
              (seen = prb_sampler_take(fresh, 0, err));
    kill(prb_proc_pid(proc), SIGCONT);
    if (!ok)
        return false;
    counts->stops++;
    for (size_t i = 0; i < seen->thread_count; i++) {
        counts->compared++;
        counts->differing += known->thread_count != seen->thread_count ||
                             !alike(&known->threads[i], &seen->threads[i]);
    }
    return true;
}

static void pause_until(double time)
{
    struct timespec until = {.tv_sec = (time_t)time,
                             .tv_nsec = (long)((time - (double)(time_t)time) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static bool run(struct prb_py *py, struct prb_proc *proc, const struct options *options,
                struct counts *counts, struct prb_error *err)
{
    PRB_AUTO(prb_sampler) struct prb_sampler *sampler = prb_sampler_new(py, proc, err);
    if (!sampler)
        return false;
    prb_sampler_expect_many(sampler);
    for (int warm = 0; warm < 3; warm++)
        if (!prb_sampler_take(sampler, options->tries, err))
            return false;
    double start = now(), next = start;
    while ((!options->samples || counts->samples < options->samples) &&
           now() - start < options->seconds) {
        double before = now(), cpu = clock_seconds(CLOCK_THREAD_CPUTIME_ID);
        const struct prb_raw_stacks *stacks = prb_sampler_take(sampler, options->tries, err);
        double took = now() - before;
        counts->cpu += clock_seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
        if (!stacks)
            return false;
        counts->reading += took;
        if (took > counts->slowest)
            counts->slowest = took;
        count(py, stacks, counts);
        if (options->stops && counts->samples % options->stops == 0 &&
            !compare(py, proc, sampler, counts, err))
            return false;
        if (options->rate > 0)
            pause_until(next += 1 / options->rate);
    }
    return true;
}

static void print(const struct counts *counts, const struct prb_py *py)
{
    double threads = counts->threads ? (double)counts->threads : 1;
    printf("{\"layout\": \"%s\", \"samples\": %llu, \"thread_samples\": %llu, \"frames\": %llu, "
           "\"tries\": %llu, \"rejected\": %llu, \"unstable\": %llu, \"broken\": %llu, "
           "\"checked\": %llu, \"impossible\": %llu, \"stops\": %llu, \"compared\": %llu, "
           "\"differing\": %llu, \"us_per_thread\": %.3f, "
           "\"cpu_us_per_thread\": %.3f, \"us_slowest\": %.1f}\n",
           py->layout.name, (unsigned long long)counts->samples,
           (unsigned long long)counts->threads, (unsigned long long)counts->frames,
           (unsigned long long)counts->tries, (unsigned long long)counts->rejected,
           (unsigned long long)counts->unstable, (unsigned long long)counts->broken,
           (unsigned long long)counts->checked, (unsigned long long)counts->impossible,
           (unsigned long long)counts->stops, (unsigned long long)counts->compared,
           (unsigned long long)counts->differing, counts->reading * 1e6 / threads,
           counts->cpu * 1e6 / threads, counts->slowest * 1e6);
}

static bool parse(int argc, char **argv, struct options *options)
{
    *options = (struct options){.seconds = 10};
    if (argc < 2)
        return false;
    options->pid = (pid_t)atoi(argv[1]);
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            options->seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--samples") == 0)
            options->samples = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--stops") == 0)
            options->stops = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--rate") == 0)
            options->rate = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--tries") == 0)
            options->tries = (unsigned)atoi(argv[i + 1]);
        else
            return false;
    }
    return options->pid > 0;
}

int main(int argc, char **argv)
{
    struct options options;
    struct prb_error err = {0};
    if (!parse(argc, argv, &options)) {
        fprintf(stderr, "usage: sample PID [--seconds S] [--samples N] [--rate HZ] [--tries N] "
                        "[--stops N]\n");
        return 2;
    }
    PRB_AUTO(prb_proc) struct prb_proc *proc = prb_proc_open(options.pid, &err);
    PRB_AUTO(prb_modules) struct prb_modules modules = {0};
    struct prb_mem *mem = proc ? prb_proc_mem(proc, &err) : NULL;
    struct prb_py *runtimes = NULL;
    size_t runtime_count = 0;
    struct counts counts = {0};
    bool ok = mem && prb_modules_init(&modules, proc, &err) &&
              prb_py_find(&modules, mem, &runtimes, &runtime_count, &err) &&
              run(&runtimes[0], proc, &options, &counts, &err);
    if (ok)
        print(&counts, &runtimes[0]);
    else
        fprintf(stderr, "sample: %s\n", err.text);
    prb_py_free(runtimes, runtime_count);
    return ok ? 0 : 1;
}
