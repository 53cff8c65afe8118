/* What was seen of one process (seen.h). */
#include "serve/live/seen.h"

#include <string.h>

#include "base/clock.h"
#include "base/index.h"
#include "proc/stat.h"

#define THREADS_MAX 4096 /* of the profile, as PRB_WATCH_NODES_MAX */
#define GONE_LOOKS 3     /* a thread that was not found in so many looks has ended */

const struct prb_profile *prb_seen_profile(const struct prb_seen *item)
{
    return item->ended ? item->ended : prb_profiler_profile(item->profiler);
}

/* Of a stack, by its names and lines. */
static uint64_t hash_of(const struct prb_profile *profile, uint32_t node)
{
    uint64_t hash = 1;
    for (; node; node = profile->nodes[node].parent) {
        const struct prb_profile_frame *frame = profile->frames + profile->nodes[node].frame;
        const struct prb_profile_function *function = profile->functions + frame->function;
        const char *name = function->qualname ? function->qualname : "";
        hash = prb_hash_words(hash, prb_hash_bytes(name, strlen(name)));
        hash = prb_hash_words(hash, (uint64_t)(unsigned)frame->line);
    }
    return hash;
}

static void add_change(struct prb_seen *item, struct prb_seen_moment *moment, uint32_t thread,
                       uint32_t node)
{
    item->changes[item->change_count++ % PRB_WATCH_CHANGES] =
        (struct prb_seen_change){thread, node};
    moment->to = item->change_count;
    moment->changed++;
    while (item->change_count - item->moments[item->moment_first % PRB_WATCH_MOMENTS].from >
               PRB_WATCH_CHANGES &&
           item->moment_first < item->moment_count)
        item->moment_first++;
}

static bool room_for_threads(struct prb_seen *item, size_t count)
{
    while (item->thread_count < count) {
        if (!PRB_GROW(item->threads, item->thread_count, item->thread_cap))
            return false;
        item->threads[item->thread_count++] = (struct prb_seen_thread){0};
    }
    return true;
}

static void note_threads(struct prb_seen *item, const struct prb_profile *profile,
                         struct prb_seen_moment *moment, double now)
{
    if (!room_for_threads(item, profile->thread_count))
        return;
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct prb_profile_thread *row = profile->threads + i;
        struct prb_seen_thread *thread = item->threads + i;
        bool seen = row->seen == profile->samples;
        if (!thread->look && seen)
            thread->changed = now;
        if (seen) {
            thread->look = item->look;
            if (thread->node == row->node)
                continue;
            if (thread->node)
                thread->changed = now;
            thread->node = row->node;
            add_change(item, moment, (uint32_t)i, row->node);
        } else if (thread->node && item->look - thread->look >= GONE_LOOKS) {
            thread->node = 0;
            add_change(item, moment, (uint32_t)i, 0);
        }
    }
}

static void note_usage(struct prb_seen *item, struct prb_seen_moment *moment, double now)
{
    char folder[32];
    struct prb_stat stat;
    snprintf(folder, sizeof folder, "/proc/%d", (int)item->pid);
    if (!prb_stat_of(folder, &stat) || stat.count < PRB_STAT_RSS)
        return;
    double ticks = (double)(stat.field[PRB_STAT_UTIME] + stat.field[PRB_STAT_STIME]);
    double seconds = (ticks - item->ticks) / (double)sysconf(_SC_CLK_TCK);
    moment->cpu = item->look > 1 ? (float)(seconds / (now - item->at)) : -1;
    moment->rss = (double)(stat.field[PRB_STAT_RSS] * sysconf(_SC_PAGESIZE));
    moment->threads = (int)stat.field[PRB_STAT_THREADS];
    item->ticks = ticks;
    item->at = now;
}

static bool begin_profiler(struct prb_seen *item, struct prb_error *err)
{
    const struct prb_profiler_options options = {.mode = PRB_PROFILE_WALL,
                                                 .rate = 1 / PRB_WATCH_EVERY};
    struct prb_profiler *profiler = prb_profiler_new(&options, err);
    if (!profiler || !prb_profiler_add(profiler, item->pid, err)) {
        prb_profiler_free(profiler);
        return false;
    }
    item->profiler = profiler;
    return true;
}

/* The tables of the profile only grow.  A new one knows by hashes who has not moved since. */
static void begin_anew(struct prb_seen *item)
{
    struct prb_profiler *before = item->profiler;
    struct prb_seen_thread *threads = item->threads;
    size_t count = item->thread_count;
    if (!begin_profiler(item, NULL))
        return;
    item->threads = NULL;
    item->thread_count = item->thread_cap = 0;
    item->moment_first = item->moment_count;
    item->change_count = 0;
    item->look = 1;
    prb_profiler_sample(item->profiler, NULL);
    const struct prb_profile *old = prb_profiler_profile(before);
    const struct prb_profile *profile = prb_profiler_profile(item->profiler);
    bool room = room_for_threads(item, profile->thread_count);
    for (size_t i = 0; room && i < profile->thread_count; i++)
        for (size_t j = 0; j < count; j++)
            if (old->threads[j].thread_id == profile->threads[i].thread_id && threads[j].node &&
                hash_of(old, threads[j].node) == hash_of(profile, profile->threads[i].node))
                item->threads[i] =
                    (struct prb_seen_thread){.look = 1, .changed = threads[j].changed};
    free(threads);
    prb_profiler_free(before);
}

static bool ran_out(const struct prb_profile *profile)
{
    return profile->node_count > PRB_WATCH_NODES_MAX || profile->thread_count > THREADS_MAX ||
           profile->weight_count > 2 * PRB_WATCH_NODES_MAX;
}

static void end(struct prb_seen *item)
{
    item->ended = prb_profiler_finish(item->profiler);
    item->end = prb_clock_s();
    prb_profiler_free(item->profiler);
    item->profiler = NULL;
    prb_step_reader_free(item->steps);
    item->steps = NULL;
}

/* All but its lock, which the caller has and others may wait for. */
static void fill(struct prb_seen *item, const struct prb_seen *with)
{
    const size_t from = offsetof(struct prb_seen, pid);
    memcpy((char *)item + from, (const char *)with + from, sizeof *item - from);
}

void prb_seen_forget(struct prb_seen *item)
{
    prb_profiler_free(item->profiler);
    if (item->ended)
        prb_profile_free(item->ended);
    prb_step_reader_free(item->steps);
    free(item->moments);
    free(item->changes);
    free(item->threads);
    fill(item, &(struct prb_seen){0});
}

void prb_seen_look(struct prb_seen *item)
{
    bool any = prb_profiler_sample(item->profiler, NULL);
    if (!any && !prb_profiler_alive(item->profiler)) {
        end(item);
        return;
    }
    double now = prb_clock_s();
    item->look++;
    uint64_t number = item->moment_count++;
    if (item->moment_count - item->moment_first > PRB_WATCH_MOMENTS)
        item->moment_first = item->moment_count - PRB_WATCH_MOMENTS;
    struct prb_seen_moment *moment = item->moments + number % PRB_WATCH_MOMENTS;
    *moment =
        (struct prb_seen_moment){.time = prb_clock_epoch_s(),
                                 .from = item->change_count,
                                 .to = item->change_count,
                                 .cpu = -1,
                                 .step = item->steps ? prb_step_reader_last(item->steps) : -1};
    note_usage(item, moment, now);
    const struct prb_profile *profile = prb_profiler_profile(item->profiler);
    if (any)
        note_threads(item, profile, moment, now);
    if (ran_out(profile))
        begin_anew(item);
}

bool prb_seen_begin(struct prb_seen *item, pid_t pid)
{
    struct prb_error err = {0};
    struct prb_seen made = {.pid = pid};
    char folder[32];
    struct prb_stat stat;
    snprintf(folder, sizeof folder, "/proc/%d", (int)pid);
    if (!prb_stat_of(folder, &stat) || stat.count < PRB_STAT_STARTTIME)
        return false;
    made.started = (uint64_t)stat.field[PRB_STAT_STARTTIME];
    made.moments = calloc(PRB_WATCH_MOMENTS, sizeof *made.moments);
    made.changes = calloc(PRB_WATCH_CHANGES, sizeof *made.changes);
    if (!made.moments || !made.changes || !begin_profiler(&made, &err)) {
        free(made.moments);
        free(made.changes);
        return false;
    }
    made.steps = prb_step_reader_new(pid, made.started);
    pthread_mutex_lock(&item->lock);
    prb_seen_forget(item);
    fill(item, &made);
    pthread_mutex_unlock(&item->lock);
    return true;
}

/* ---- what others ask ---- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether the Python frames of a stack are those of a node. */
static bool is_node(const struct prb_profile *profile, uint32_t node,
                    const struct prb_thread *thread)
{
    for (size_t i = 0; i < thread->frame_count; i++) {
        const struct prb_frame *frame = thread->frames + i;
        if (frame->kind != PRB_FRAME_PYTHON)
            continue;
        if (!node)
            return false;
        const struct prb_profile_frame *at = profile->frames + profile->nodes[node].frame;
        const struct prb_profile_function *function = profile->functions + at->function;
        if (at->line != frame->line || !same_text(function->qualname, frame->qualname) ||
            !same_text(function->filename, frame->filename))
            return false;
        node = profile->nodes[node].parent;
    }
    return !node;
}

void prb_seen_since(const struct prb_seen *item, const struct prb_stacks *stacks, double *out)
{
    const struct prb_profile *profile = prb_seen_profile(item);
    double now = prb_clock_s();
    for (size_t i = 0; i < stacks->thread_count; i++)
        for (size_t j = 0; j < item->thread_count && j < profile->thread_count; j++) {
            if (!item->threads[j].node ||
                profile->threads[j].thread_id != stacks->threads[i].thread_id)
                continue;
            out[i] = is_node(profile, item->threads[j].node, stacks->threads + i)
                         ? now - item->threads[j].changed
                         : 0;
        }
}

bool prb_seen_measured(const struct prb_seen *item, struct prb_measured *out)
{
    if (!item->pid || item->ended || item->moment_count == item->moment_first)
        return false;
    const struct prb_profile *profile = prb_profiler_profile(item->profiler);
    const struct prb_seen_moment *moment =
        item->moments + (item->moment_count - 1) % PRB_WATCH_MOMENTS;
    *out = (struct prb_measured){.pid = item->pid,
                                 .rank = profile->processes[0].rank,
                                 .command = profile->processes[0].command,
                                 .cpu = item->ticks / (double)sysconf(_SC_CLK_TCK),
                                 .rss = moment->rss,
                                 .threads = moment->threads,
                                 .step = moment->step,
                                 .unchanged = -1};
    for (size_t i = 0; i < item->thread_count && i < profile->thread_count; i++)
        if (item->threads[i].node && (profile->threads[i].tid == item->pid || out->unchanged < 0))
            out->unchanged = prb_clock_s() - item->threads[i].changed;
    return true;
}
