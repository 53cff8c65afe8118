/* One profile added to another: packed.h. */
#include "profile/packed.h"

static uint64_t hash_process(const struct prb_profile_process *process)
{
    return prb_hash_words((uint64_t)(int64_t)process->rank, (uint64_t)(int64_t)process->pid);
}

static uint64_t process_hash(const void *items, uint32_t item)
{
    return hash_process(&((const struct prb_profile_box *)items)->processes[item]);
}

static bool process_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_profile_process *a = &((const struct prb_profile_box *)items)->processes[item],
                                     *b = key;
    return a->rank == b->rank && a->pid == b->pid;
}

static uint64_t hash_thread(const struct prb_profile_thread *thread)
{
    return prb_hash_words(thread->process,
                          prb_hash_words((uint64_t)(int64_t)thread->tid, thread->thread_id));
}

static uint64_t thread_hash(const void *items, uint32_t item)
{
    return hash_thread(&((const struct prb_profile_box *)items)->threads[item]);
}

static bool thread_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_profile_thread *a = &((const struct prb_profile_box *)items)->threads[item],
                                    *b = key;
    return a->process == b->process && a->tid == b->tid && a->thread_id == b->thread_id;
}

/* Where what the other has is here. */
struct adding {
    struct prb_profile_box *box;
    const struct prb_profile *other;
    double from;
    uint32_t *processes, *threads, *frames, *nodes;
};

static void adding_deinit(struct adding *adding)
{
    free(adding->processes);
    free(adding->threads);
    free(adding->frames);
    free(adding->nodes);
}
PRB_DEFINE_AUTO(adding, struct adding, adding_deinit)

static void add_process(struct adding *adding, size_t i)
{
    static const struct prb_index_kind kind = {process_hash, process_same};
    struct prb_profile_box *box = adding->box;
    struct prb_profile_process one = adding->other->processes[i];
    uint64_t hash = hash_process(&one);
    uint32_t at = prb_index_find(&box->process_index, &kind, box, hash, &one);
    one.start += adding->from;
    one.end += adding->from;
    if (at == PRB_NO_ITEM) {
        one.command = prb_profile_text(box, one.command);
        one.python = prb_profile_text(box, one.python);
        at = prb_profile_process(box, &one);
        box->failed = box->failed || !prb_index_add(&box->process_index, &kind, box, hash, at);
    } else {
        box->processes[at].end = one.end;
        box->processes[at].ended = one.ended;
        box->processes[at].samples += one.samples;
    }
    adding->processes[i] = at;
}

static void add_stacks(struct adding *adding)
{
    struct prb_profile_box *box = adding->box;
    const struct prb_profile *other = adding->other;
    for (size_t i = 0; i < other->frame_count; i++) {
        struct prb_profile_function one = other->functions[other->frames[i].function];
        one.name = prb_profile_text(box, one.name);
        one.qualname = prb_profile_text(box, one.qualname);
        one.filename = prb_profile_text(box, one.filename);
        one.short_filename = prb_profile_text(box, one.short_filename);
        adding->frames[i] =
            prb_profile_frame(box, prb_profile_function(box, &one), other->frames[i].line);
    }
    for (size_t i = 1; i < other->node_count; i++)
        adding->nodes[i] = prb_profile_node(box, adding->nodes[other->nodes[i].parent],
                                            adding->frames[other->nodes[i].frame]);
}

static void add_thread(struct adding *adding, size_t i)
{
    static const struct prb_index_kind kind = {thread_hash, thread_same};
    struct prb_profile_box *box = adding->box;
    struct prb_profile_thread one = adding->other->threads[i];
    one.process = adding->processes[one.process];
    one.name = prb_profile_text(box, one.name);
    one.waits = prb_profile_text(box, one.waits);
    one.node = adding->nodes[one.node];
    one.seen += box->profile.samples;
    uint64_t hash = hash_thread(&one);
    uint32_t at = prb_index_find(&box->thread_index, &kind, box, hash, &one);
    if (at == PRB_NO_ITEM) {
        size_t before = box->profile.thread_count;
        at = prb_profile_thread(box, &one);
        if (at == before && !box->failed)
            box->failed = !prb_index_add(&box->thread_index, &kind, box, hash, at);
    } else {
        struct prb_profile_thread *here = &box->threads[at];
        one.samples += here->samples;
        one.gil_samples += here->gil_samples;
        one.idle_samples += here->idle_samples;
        one.dropped += here->dropped;
        one.cpu_ns += here->cpu_ns;
        *here = one;
    }
    adding->threads[i] = at;
}

static void add_weights(struct adding *adding)
{
    for (size_t i = 0; i < adding->other->weight_count && !adding->box->failed; i++) {
        const struct prb_profile_weight *one = &adding->other->weights[i];
        uint32_t at =
            prb_profile_weight(adding->box, adding->threads[one->thread], adding->nodes[one->node]);
        if (at == PRB_NO_ITEM)
            return;
        adding->box->weights[at].samples += one->samples;
        adding->box->weights[at].ns += one->ns;
    }
}

static void add_numbers(struct prb_profile *profile, const struct prb_profile *other, double from)
{
    if (!profile->samples) {
        profile->start = other->start;
        profile->rate = other->rate;
        profile->mode = other->mode;
    }
    double samples = (double)(profile->samples + other->samples);
    if (samples > 0)
        profile->late =
            (profile->late * (double)profile->samples + other->late * (double)other->samples) /
            samples;
    profile->native = profile->native || other->native;
    profile->samples += other->samples;
    profile->thread_samples += other->thread_samples;
    profile->dropped += other->dropped;
    profile->failed += other->failed;
    profile->tries += other->tries;
    profile->rejected += other->rejected;
    profile->moved += other->moved;
    profile->skipped += other->skipped;
    profile->cpu += other->cpu;
#define MOST(member, value)                                                                        \
    if (profile->member < (value))                                                                 \
    profile->member = (value)
    MOST(latest, other->latest);
    MOST(longest_stop, other->longest_stop);
    MOST(error, other->error);
    MOST(seconds, from + other->seconds);
#undef MOST
}

bool prb_profile_add(struct prb_profile_box *box, const struct prb_profile *other, double from,
                     struct prb_error *err)
{
    PRB_AUTO(adding) struct adding adding = {.box = box, .other = other, .from = from};
    adding.processes = calloc(other->process_count + 1, sizeof *adding.processes);
    adding.threads = calloc(other->thread_count + 1, sizeof *adding.threads);
    adding.frames = calloc(other->frame_count + 1, sizeof *adding.frames);
    adding.nodes = calloc(other->node_count + 1, sizeof *adding.nodes);
    if (!adding.processes || !adding.threads || !adding.frames || !adding.nodes)
        return prb_nomem(err);
    for (size_t i = 0; i < other->process_count && !box->failed; i++)
        add_process(&adding, i);
    if (!box->failed)
        add_stacks(&adding);
    for (size_t i = 0; i < other->thread_count && !box->failed; i++)
        add_thread(&adding, i);
    add_weights(&adding);
    add_numbers(&box->profile, other, from);
    if (other->warning && !box->profile.warning)
        box->profile.warning = prb_profile_text(box, other->warning);
    return !box->failed || prb_nomem(err);
}
