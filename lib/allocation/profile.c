/* Sampled allocations as a profile: stacks, with blocks and bytes, in all formats of profiles. */
#include "profile/profile.h"

#include "allocation/allocation.h"
#include "base/clock.h"
#include "base/hash_map.h"
#include "base/real.h"

#define CUT "(outer frames left out)"
#define NS_PER_S 1e9

struct prb_allocations *prb_allocations_take(struct prb_target *target, struct prb_error *err)
{
    struct prb_allocations *allocations = calloc(1, sizeof *allocations);
    if (!allocations)
        return PRB_NULL(prb_nomem(err));
    if (prb_allocations_read(target, allocations, err)) {
        allocations->taken = prb_clock_epoch_s();
        return allocations;
    }
    free(allocations);
    return NULL;
}

void prb_allocations_free(struct prb_allocations *allocations)
{
    if (!allocations)
        return;
    prb_allocations_deinit(allocations);
    free(allocations);
}

bool prb_allocations_go_on(const struct prb_allocations *allocations)
{
    const struct prb_region *head = &allocations->head;
    return !(head->until > 0) && (head->python || head->why_no_python[0]);
}

/* ---- stacks ---- */

struct making {
    struct prb_profile_box *box;
    struct prb_target *target;
    const struct prb_allocations *allocations;
    struct prb_folders folders; /* of sys.path */
    struct prb_stacks *stacks;  /* of now, for names of threads; or NULL */
    struct prb_tasks tasks;
    struct prb_hash_map threads; /* 1 + index, by id in the target */
    uint32_t *nodes;             /* by site */
    double total, variance;
};

static void making_deinit(struct making *m)
{
    prb_stacks_free(m->stacks);
    prb_tasks_deinit(&m->tasks);
    prb_hash_map_deinit(&m->threads);
    free(m->nodes);
}
PRB_DEFINE_AUTO(making, struct making, making_deinit)

static uint32_t frame_of(struct making *m, const struct prb_site_name *name)
{
    struct prb_profile_box *box = m->box;
    struct prb_profile_function function = {
        .kind = name->native ? PRB_FRAME_NATIVE : PRB_FRAME_PYTHON,
        .name = prb_profile_text(box, name->name ? name->name : "?"),
        .qualname = prb_profile_text(box, name->function ? name->function : "?"),
        .filename = prb_profile_text(box, name->file),
        .first_line = name->first_line,
    };
    if (name->file)
        function.short_filename = prb_profile_text(box, prb_shorten(&m->folders, name->file));
    return prb_profile_frame(box, prb_profile_function(box, &function), name->line);
}

static bool make_nodes(struct making *m, const struct prb_allocation_names *names,
                       struct prb_error *err)
{
    const struct prb_region *head = &m->allocations->head;
    m->nodes = calloc(head->site_count + 1, sizeof *m->nodes);
    if (!m->nodes)
        return prb_nomem(err);
    static const struct prb_site_name cut = {.function = CUT, .name = CUT};
    for (uint32_t i = 0; i < head->site_count; i++) {
        uint32_t node = 0;
        if (m->allocations->sites[i].cut)
            node = prb_profile_node(m->box, node, frame_of(m, &cut));
        for (size_t k = names->sites[i].count; k-- > 0;)
            node = prb_profile_node(m->box, node, frame_of(m, &names->sites[i].items[k]));
        m->nodes[i] = node;
    }
    return true;
}

/* ---- threads ---- */

/* A thread that is still there has a name. */
static uint32_t thread_of(struct making *m, uint32_t inner)
{
    uint64_t known = prb_hash_map_number(&m->threads, inner);
    if (known)
        return (uint32_t)known - 1;
    const struct prb_task *task = prb_tasks_by_inner(&m->tasks, inner);
    struct prb_profile_thread thread = {.tid = task ? task->tid : (pid_t)inner};
    for (size_t i = 0; m->stacks && i < m->stacks->thread_count; i++)
        if (m->stacks->threads[i].os_thread_id == thread.tid) {
            thread.thread_id = m->stacks->threads[i].thread_id;
            thread.name = prb_profile_text(m->box, m->stacks->threads[i].name);
        }
    uint32_t index = prb_profile_thread(m->box, &thread);
    struct prb_hash_slot *slot = prb_hash_map_add(&m->threads, inner);
    if (slot)
        slot->number = index + 1;
    return index;
}

/* ---- cells ---- */

/* A site has 14 bits, a thread 22, and an interval 28. */
static uint64_t cell_key(uint32_t site, uint32_t thread, uint32_t interval)
{
    return ((uint64_t)site << 50 | (uint64_t)(thread & 0x3fffff) << 28 | (interval & 0xfffffff)) +
           1;
}

struct earlier {
    struct prb_hash_map of; /* 1 + index in sums */
    struct {
        double bytes, count;
        uint32_t samples;
    } *sums;
    size_t count;
};
static void earlier_deinit(struct earlier *earlier)
{
    prb_hash_map_deinit(&earlier->of);
    free(earlier->sums);
}
PRB_DEFINE_AUTO(earlier, struct earlier, earlier_deinit)

/* What a cell of now had before: of the same record, whose intervals may have been shorter then. */
static bool add_before(const struct prb_allocations *now, const struct prb_allocations *before,
                       struct earlier *out, struct prb_error *err)
{
    if (!before || before->head.since != now->head.since)
        return true;
    uint32_t longer = now->head.interval / before->head.interval;
    out->sums = calloc(before->cell_count + 1, sizeof *out->sums);
    if (!out->sums)
        return prb_nomem(err);
    for (size_t i = 0; i < before->cell_count; i++) {
        const struct prb_cell *cell = &before->cells[i];
        struct prb_hash_slot *slot = prb_hash_map_add(
            &out->of, cell_key(cell->site, cell->thread, cell->interval / (longer ? longer : 1)));
        if (!slot)
            return prb_nomem(err);
        if (!slot->number)
            slot->number = ++out->count;
        out->sums[slot->number - 1].bytes += cell->bytes;
        out->sums[slot->number - 1].count += cell->count;
        out->sums[slot->number - 1].samples += cell->samples;
    }
    return true;
}

/* What one cell adds to the profile. */
struct part {
    double bytes, count;
    uint32_t samples;
};

static struct part part_of(const struct making *m, const struct earlier *earlier,
                           const struct prb_cell *cell)
{
    if (m->box->profile.mode == PRB_PROFILE_LIVE)
        return (struct part){prb_greater(cell->live_bytes, 0), prb_greater(cell->live_count, 0),
                             cell->samples};
    struct part part = {cell->bytes, cell->count, cell->samples};
    uint64_t known =
        prb_hash_map_number(&earlier->of, cell_key(cell->site, cell->thread, cell->interval));
    if (known) {
        part.bytes -= earlier->sums[known - 1].bytes;
        part.count -= earlier->sums[known - 1].count;
        part.samples -= earlier->sums[known - 1].samples;
    }
    return part;
}

/* The cells of one interval, one after another: each takes the part of its time that its bytes
 * are of all. */
static void add_interval(struct making *m, const struct earlier *earlier, size_t first, size_t end)
{
    const struct prb_cell *cells = m->allocations->cells;
    struct prb_profile *profile = &m->box->profile;
    double all = 0, length = m->allocations->head.interval * NS_PER_S;
    double at = cells[first].interval * length;
    for (size_t i = first; i < end; i++)
        all += part_of(m, earlier, &cells[i]).bytes;
    for (size_t i = first; i < end; i++) {
        struct part part = part_of(m, earlier, &cells[i]);
        uint64_t bytes = (uint64_t)prb_round(part.bytes), count = (uint64_t)prb_round(part.count);
        if (!bytes || !part.samples)
            continue;
        uint32_t thread = thread_of(m, cells[i].thread), node = m->nodes[cells[i].site];
        uint32_t weight = prb_profile_weight(m->box, thread, node);
        if (m->box->failed)
            return;
        m->box->weights[weight].samples += count;
        m->box->weights[weight].ns += bytes;
        profile->samples += part.samples;
        double until = at + length * part.bytes / all;
        prb_profile_add_interval(m->box, thread, node, 0, (uint64_t)at, (uint64_t)until, count,
                                 bytes);
        at = until;
        m->variance += cells[i].live_variance;
    }
}

static void add_cells(struct making *m, const struct earlier *earlier)
{
    const struct prb_cell *cells = m->allocations->cells;
    for (size_t i = 0, end; i < m->allocations->cell_count; i = end) {
        for (end = i; end < m->allocations->cell_count && cells[end].interval == cells[i].interval;)
            end++;
        add_interval(m, earlier, i, end);
    }
}

/* ---- the profile ---- */

static void begin(struct making *m, const struct prb_allocations *before)
{
    const struct prb_target_info *info = prb_target_info(m->target);
    const struct prb_region *head = &m->allocations->head;
    struct prb_profile *profile = &m->box->profile;
    double end = head->until > 0 ? head->until : m->allocations->taken;
    profile->start = head->since;
    profile->seconds = end - head->since;
    if (before && profile->mode == PRB_PROFILE_ALLOCATED && before->head.since == head->since)
        profile->seconds = end - before->taken;
    profile->rate = 1;
    m->box->timeline.wanted = true;
    const struct prb_profile_process process = {
        .pid = (pid_t)info->pid,
        .command = prb_profile_text(m->box, info->command),
        .python = prb_profile_text(m->box, info->python),
        .rank = prb_process_rank((pid_t)info->pid),
        .end = profile->seconds,
    };
    prb_profile_process(m->box, &process);
    prb_profile_find_root(m->box, 0, (pid_t)info->pid);
    m->stacks = prb_stacks_take(m->target, NULL, NULL);
    if (!prb_proc_tids(m->target->proc, &m->tasks, NULL))
        m->tasks.count = 0;
    uint64_t interpreter = 0;
    if (m->target->runtime_count &&
        prb_mem_u64(m->target->mem, m->target->pys[0].interpreters, &interpreter, NULL))
        prb_folders_read(&m->target->runtimes[0], interpreter, &m->box->arena, &m->folders);
}

struct prb_profile *prb_allocations_profile(struct prb_target *target,
                                            const struct prb_allocations *allocations,
                                            const struct prb_allocations *before,
                                            enum prb_profile_mode mode, struct prb_error *err)
{
    PRB_AUTO(prb_allocation_names) struct prb_allocation_names names = {0};
    PRB_AUTO(earlier) struct earlier earlier = {0};
    PRB_AUTO(making) struct making m = {.target = target, .allocations = allocations};
    if (!prb_allocation_names_find(target, allocations, &names, err) ||
        !add_before(allocations, before, &earlier, err) || !(m.box = prb_profile_new(err)))
        return NULL;
    PRB_AUTO(prb_profile) struct prb_profile *profile = &m.box->profile;
    profile->mode = mode;
    begin(&m, before);
    if (!make_nodes(&m, &names, err))
        return NULL;
    add_cells(&m, &earlier);
    profile->error = mode == PRB_PROFILE_LIVE ? prb_sqrt(prb_greater(m.variance, 0)) : 0;
    return m.box->failed ? PRB_NULL(prb_nomem(err)) : PRB_STEAL(profile);
}
