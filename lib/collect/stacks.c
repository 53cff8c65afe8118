/*
 * Stacks of the processes that wish to be sampled (probing.pprof): looks from outside between two
 * turns, counted by thread, what it did and where.  Of others nothing is opened, and nobody wakes for
 * them.
 */
#include <stdlib.h>

#include "base/index.h"
#include "collect/parts.h"
#include "probing.h"
#include "profile/format/format.h"
#include "profile/kept.h"

#define AGAIN 10.0      /* s: until one that could not be sampled is tried again */
#define NODES_MAX 50000 /* stacks that are known at a time; then all are forgotten */
#define FRAMES_MAX 256  /* of a stack in a row: a deeper one loses its outermost frames */

struct count {
    uint32_t thread, node; /* of the profile */
    unsigned state;
    int64_t samples;
};

struct prb_collect_stacks {
    struct prb_profiler *profiler; /* NULL: it could not be opened */
    struct count *counts;
    size_t count, cap;
    struct prb_index index;
    uint64_t *seen; /* samples of each thread of the profile that were counted */
    size_t seen_count, seen_cap;
    double opened, written; /* s, monotonic */
};

static uint64_t hash_of(uint32_t thread, uint32_t node, unsigned state)
{
    return prb_hash_words((uint64_t)thread << 32 | node, state);
}

static uint64_t count_hash(const void *items, uint32_t item)
{
    const struct count *count = (const struct count *)items + item;
    return hash_of(count->thread, count->node, count->state);
}

static bool count_same(const void *items, uint32_t item, const void *key)
{
    const struct count *a = (const struct count *)items + item, *b = key;
    return a->thread == b->thread && a->node == b->node && a->state == b->state;
}

static const struct prb_index_kind kind = {count_hash, count_same};

static void stop(struct prb_collect_stacks *stacks)
{
    prb_profiler_free(stacks->profiler);
    stacks->profiler = NULL;
    free(stacks->seen);
    stacks->seen = NULL;
    stacks->seen_count = 0;
}

void prb_collect_stacks_free(struct prb_collect_stacks *stacks)
{
    if (!stacks)
        return;
    stop(stacks);
    prb_index_deinit(&stacks->index);
    free(stacks->counts);
    free(stacks);
}

static void start(struct prb_collect_stacks *stacks, pid_t pid, double time)
{
    const struct prb_profiler_options options = {.rate = PRB_KEPT_RATE, .states = true};
    stacks->opened = time;
    stacks->profiler = prb_profiler_new(&options, NULL);
    if (stacks->profiler && !prb_profiler_add(stacks->profiler, pid, NULL))
        stop(stacks);
}

/* ---- counting ---- */

static void add(struct prb_collect_stacks *stacks, const struct count *one)
{
    uint64_t hash = hash_of(one->thread, one->node, one->state);
    uint32_t at = prb_index_find(&stacks->index, &kind, stacks->counts, hash, one);
    if (at != PRB_NO_ITEM) {
        stacks->counts[at].samples += one->samples;
        return;
    }
    if (!PRB_GROW(stacks->counts, stacks->count, stacks->cap))
        return;
    stacks->counts[stacks->count] = *one;
    stacks->count +=
        prb_index_add(&stacks->index, &kind, stacks->counts, hash, (uint32_t)stacks->count);
}

/* A thread that waits is visited now and then, and its samples come together. */
static void look_at(struct prb_collect_stacks *stacks)
{
    if (!prb_profiler_sample(stacks->profiler, NULL))
        return;
    const struct prb_profile *profile = prb_profiler_profile(stacks->profiler);
    while (stacks->seen_count < profile->thread_count) {
        if (!PRB_GROW(stacks->seen, stacks->seen_count, stacks->seen_cap))
            return;
        stacks->seen[stacks->seen_count++] = 0;
    }
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        const struct prb_profile_thread *thread = &profile->threads[i];
        const struct count one = {i, thread->node,
                                  thread->state & (PRB_SAMPLED_GIL | PRB_SAMPLED_IDLE),
                                  (int64_t)(thread->samples - stacks->seen[i])};
        stacks->seen[i] = thread->samples;
        if (one.samples > 0 && one.node)
            add(stacks, &one);
    }
}

bool prb_collect_stacks_look(const struct prb_collection *collection)
{
    bool any = false;
    for (size_t i = 0; i < collection->count; i++) {
        const struct prb_collected *process = &collection->items[i];
        if (process->ended || !process->stacks || !process->stacks->profiler)
            continue;
        look_at(process->stacks);
        any = true;
    }
    return any;
}

/* ---- rows ---- */

/* Outermost first, frames between ";"; of one that is too long the innermost ones. */
static const char *text_of(const struct prb_profile *profile, uint32_t node, struct prb_buf *out)
{
    static const struct prb_profile_style style = {0};
    PRB_AUTO(prb_buf) struct prb_buf label = {0};
    uint32_t frames[FRAMES_MAX];
    size_t depth = 0;
    for (; node && depth < FRAMES_MAX; node = profile->nodes[node].parent)
        frames[depth++] = profile->nodes[node].frame;
    out->len = 0;
    while (depth-- > 0) {
        label.len = 0;
        prb_label_frame(&label, profile, frames[depth], &style);
        prb_label_folded(out, prb_buf_ok(&label) ? label.data : "?");
        prb_buf_adds(out, depth ? ";" : "");
    }
    return prb_buf_ok(out) ? out->data : NULL;
}

static const char *word_of(unsigned state)
{
    return state & PRB_SAMPLED_GIL ? "gil" : state & PRB_SAMPLED_IDLE ? "idle" : "running";
}

static void write_counts(const struct prb_collected *process, double now)
{
    struct prb_collect_stacks *stacks = process->stacks;
    const struct prb_profile *profile = prb_profiler_profile(stacks->profiler);
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (size_t i = 0; i < stacks->count; i++) {
        const struct count *count = &stacks->counts[i];
        const struct prb_profile_thread *thread = &profile->threads[count->thread];
        const struct prb_collected_stack row = {.tid = thread->tid,
                                                .thread = thread->name,
                                                .state = word_of(count->state),
                                                .samples = count->samples,
                                                .stack = text_of(profile, count->node, &text)};
        if (row.stack)
            prb_collect_put_stack(process, now, &row);
    }
    stacks->count = 0;
    prb_index_clear(&stacks->index);
}

void prb_collect_stacks(struct prb_collected *process, double time, double now, bool last)
{
    struct prb_collect_stacks *stacks = process->stacks;
    if (!process->wants_stacks && !stacks)
        return;
    if (!stacks && !(stacks = process->stacks = calloc(1, sizeof *stacks)))
        return;
    last = last || !process->wants_stacks;
    if (stacks->profiler && (last || time >= stacks->written + PRB_KEPT_SECONDS)) {
        write_counts(process, now);
        stacks->written = time;
        if (last || prb_profiler_profile(stacks->profiler)->node_count > NODES_MAX)
            stop(stacks);
    }
    if (last) {
        prb_collect_stacks_free(stacks);
        process->stacks = NULL;
    } else if (!stacks->profiler && (stacks->opened <= 0 || time >= stacks->opened + AGAIN)) {
        start(stacks, process->pid, time);
        stacks->written = time;
    }
}
