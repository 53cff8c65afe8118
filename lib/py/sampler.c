/*
 * The sampler: all threads' frame chains, read twice and compared (two equal readings prove a
 * stack).
 *
 * Every thread has a view (mem/view.h).  A sample refreshes all views in common system calls, walks
 * each, refreshes again; where the bytes are the same nothing needs a second walk, where they
 * differ the second walk must give the same chain, or that thread is tried again.  A stack that was
 * proven remains so while its bytes read the same (for a thread that does not move, the last sample
 * was the first of the two readings), and while its thread did not have the GIL (sampler_threads.c): then
 * it is not even read.
 */
#include "py/sampler.h"

#include <string.h>

#include "proc/same_cpu.h"
#include "py/sampler_threads.h"

/* One reading touches a thread's state and the last frames of its stack.  Of many, each would begin
 * and forget small units as stacks grow and shrink: it has whole pages. */
#define ONCE_UNIT 512

struct prb_sampler *prb_sampler_new(struct prb_py *py, struct prb_proc *proc, struct prb_error *err)
{
    PRB_AUTO(prb_sampler) struct prb_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return PRB_NULL(prb_nomem(err));
    sampler->py = py;
    sampler->proc = proc;
    sampler->capacity = 64;
    sampler->unit = ONCE_UNIT;
    sampler->slots = calloc(sampler->capacity, sizeof *sampler->slots);
    sampler->lists = prb_view_new(py->mem, PRB_VIEW_UNIT_MAX, err);
    sampler->heads = sampler->lists ? prb_view_new(py->mem, PRB_VIEW_UNIT_MAX, err) : NULL;
    if (!sampler->heads)
        return NULL;
    prb_view_read_late(sampler->lists);
    if (!sampler->slots)
        return PRB_NULL(prb_nomem(err));
    return PRB_STEAL(sampler);
}

void prb_sampler_free(struct prb_sampler *sampler)
{
    if (!sampler)
        return;
    prb_sampler_slots_free(sampler);
    prb_view_free(sampler->lists);
    prb_view_free(sampler->heads);
    free(sampler->result.interpreters);
    free(sampler->result.threads);
    free(sampler->notes);
    free(sampler->slot_of_thread);
    free(sampler->batch);
    free(sampler->batch_slots);
    free(sampler->same);
    free(sampler->open);
    free(sampler->active);
    free(sampler);
}

void prb_sampler_rest(struct prb_sampler *sampler)
{
    for (size_t i = 0; i < sampler->capacity; i++) {
        struct prb_sampler_slot *slot = sampler->slots[i];
        if (!slot)
            continue;
        prb_view_set_unit(slot->view, sampler->unit);
        slot->verified = slot->unchanged = slot->unmoved = false;
        slot->cold = true;
    }
    prb_view_set_unit(sampler->heads, PRB_VIEW_UNIT_MAX);
    prb_sampler_forget_gil(sampler);
}

void prb_sampler_expect_many(struct prb_sampler *sampler) { sampler->unit = PRB_VIEW_UNIT_MAX; }

void prb_sampler_read_along(struct prb_sampler *sampler, struct prb_view *view)
{
    prb_view_read_late(view);
    sampler->along = view;
}

void prb_sampler_want_anchors(struct prb_sampler *sampler, bool want)
{
    if (sampler->anchors == want)
        return;
    sampler->anchors = want;
    sampler->active_only = false;
    for (size_t i = 0; i < sampler->capacity; i++)
        if (sampler->slots[i])
            sampler->slots[i]->verified = false; /* walked without anchors, or with */
}

/* ---- passes ---- */

static bool batch_room(struct prb_sampler *sampler, size_t count, struct prb_error *err)
{
    while (sampler->batch_cap < count)
        if (!PRB_GROW(sampler->batch, sampler->batch_cap, sampler->batch_cap))
            return prb_nomem(err);
    while (sampler->batch_slot_cap < count)
        if (!PRB_GROW(sampler->batch_slots, sampler->batch_slot_cap, sampler->batch_slot_cap))
            return prb_nomem(err);
    while (sampler->open_cap < count)
        if (!PRB_GROW(sampler->open, sampler->open_cap, sampler->open_cap))
            return prb_nomem(err);
    while (sampler->same_cap < count)
        if (!PRB_GROW(sampler->same, sampler->same_cap, sampler->same_cap))
            return prb_nomem(err);
    return true;
}

/* Read again what the threads of the last sample touched, all at once, before the lists are walked;
 * not the unmoved ones.  The interpreters come first: their state of the GIL then holds for all that
 * is read later. */
static bool warm_up(struct prb_sampler *sampler, struct prb_error *err)
{
    size_t count = 0;
    if (!prb_view_refresh(&sampler->lists, 1, NULL, err) ||
        !prb_sampler_interpreters(sampler, err) || !batch_room(sampler, sampler->used, err))
        return false;
    for (size_t i = 0; i < sampler->capacity; i++) {
        struct prb_sampler_slot *slot = sampler->slots[i];
        if (!slot || slot->seen != sampler->number)
            continue;
        slot->unchanged = slot->unmoved;
        if (slot->unmoved)
            continue;
        sampler->batch_slots[count] = slot;
        sampler->batch[count++] = slot->view;
    }
    if (!prb_view_refresh(sampler->batch, count, sampler->same, err)) {
        prb_sampler_forget_gil(sampler);
        return false;
    }
    for (size_t k = 0; k < count; k++) {
        struct prb_sampler_slot *slot = sampler->batch_slots[k];
        slot->unchanged = slot->verified &= sampler->same[k];
    }
    return true;
}

/* The first reading of new threads' chains: announced when they were met, fetched together. */
static bool fetch_cold(struct prb_sampler *sampler, struct prb_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < sampler->result.thread_count; i++) {
        struct prb_sampler_slot *slot = sampler->slot_of_thread[i];
        if (!slot->cold)
            continue;
        slot->cold = false;
        sampler->batch[count++] = slot->view;
    }
    return count == 0 || prb_view_refresh(sampler->batch, count, NULL, err);
}

/* Threads begin and end while their list is walked: until it was read whole, or often enough (a
 * damaged list gives what can be read). */
#define LIST_TRIES 32
static bool list_whole(struct prb_sampler *sampler, unsigned tries_max, struct prb_error *err)
{
    bool *whole = &sampler->result.whole;
    *whole = false;
    for (unsigned tries = 0; !*whole && tries < (tries_max == 1 ? 1 : LIST_TRIES); tries++)
        if (!warm_up(sampler, err) || !prb_sampler_threads(sampler, whole, err))
            return false;
    return true;
}

/* Read the ids with the frames: a thread state has its maker's ids until its thread begins. */
static void walk_thread(struct prb_sampler *sampler, size_t i)
{
    struct prb_sampler_slot *slot = sampler->slot_of_thread[i];
    slot->last ^= 1;
    prb_walk_head(&sampler->py->layout, slot->view, slot->tstate, &slot->head);
    prb_walk_thread(sampler->py, slot->view, slot->tstate, sampler->anchors,
                    &slot->walk[slot->last]);
}

/* ---- proof ---- */

/* Whether the outermost frame is a generator's or coroutine's.  One that yields has no caller for a
 * moment: its chain seems to end there. */
static bool ends_in_generator(struct prb_sampler *sampler, struct prb_sampler_slot *slot)
{
    enum {
        GENERATORS = 0x20 | 0x80 | 0x200
    }; /* co_flags: CO_GENERATOR, … Include/cpython/code.h */
    const struct prb_walk *walk = &slot->walk[slot->last];
    const struct prb_layout *layout = &sampler->py->layout;
    const struct prb_raw_frame *root = walk->count ? &walk->frames[walk->count - 1] : NULL;
    uint32_t flags = 0;
    if (root && PRB_HAS(layout, frame, owner))
        return root->owner == PRB_NUM(layout, owner_generator);
    if (!root || root->code == slot->root || root->code == sampler->root ||
        !PRB_HAS(layout, code, flags) ||
        !prb_mem_u32(sampler->py->mem, root->code + (prb_addr)PRB_OFF(layout, code, flags), &flags,
                     NULL))
        return false;
    if (!(flags & GENERATORS))
        slot->root = sampler->root = root->code;
    return flags & GENERATORS;
}

/* Readings that must agree in a row. */
#define AGREEMENTS 1
#define AGREEMENTS_MOVED 2
#define AGREEMENTS_GENERATOR 8

static unsigned agreements_needed(struct prb_sampler *sampler, struct prb_sampler_slot *slot)
{
    if (ends_in_generator(sampler, slot))
        return AGREEMENTS_GENERATOR;
    return slot->moved ? AGREEMENTS_MOVED : AGREEMENTS;
}

enum verdict { UNPROVEN, VERIFIED, UNSTABLE };

static void publish(struct prb_sampler *sampler, size_t i, enum verdict verdict)
{
    struct prb_sampler_slot *slot = sampler->slot_of_thread[i];
    const struct prb_walk *walk = &slot->walk[slot->last];
    struct prb_raw_thread *thread = &sampler->result.threads[i];
    thread->thread_id = slot->head.thread_id;
    thread->native_id = slot->head.native_id;
    thread->frames = walk->frames;
    thread->frame_count = walk->count;
    thread->broken = walk->broken;
    thread->unstable = verdict == UNSTABLE;
    /* One reading of the lists since the last sample: what did not move in it has not moved since
     * then. */
    thread->unmoved = slot->unmoved && slot->unchanged && sampler->number == sampler->taken + 1;
    slot->verified = verdict == VERIFIED;
}

/* Read the open threads again; those whose readings agree are published: at once, or, if they were
 * seen to move, after some agreements in a row, because two torn readings can be equal by chance.
 * Two broken chains never agree, as a frame looks broken while it is made.  The others stay open.
 */
static bool settle(struct prb_sampler *sampler, struct prb_error *err)
{
    size_t count = sampler->open_count;
    for (size_t k = 0; k < count; k++)
        sampler->batch[k] = sampler->slot_of_thread[sampler->open[k]]->view;
    if (!prb_view_refresh(sampler->batch, count, sampler->same, err))
        return false;
    sampler->open_count = 0;
    for (size_t k = 0; k < count; k++) {
        size_t i = sampler->open[k];
        struct prb_sampler_slot *slot = sampler->slot_of_thread[i];
        sampler->result.tries++;
        bool agree = sampler->same[k] && !prb_walk_fails(&slot->walk[slot->last]);
        if (!sampler->same[k]) {
            walk_thread(sampler, i);
            agree = prb_walk_equal(&slot->walk[0], &slot->walk[1]);
        }
        slot->agreed = agree ? slot->agreed + 1 : 0;
        if (agree && slot->agreed >= agreements_needed(sampler, slot)) {
            publish(sampler, i, VERIFIED);
            continue;
        }
        sampler->result.rejected += !agree;
        slot->moved |= !agree;
        sampler->open[sampler->open_count++] = i;
    }
    return true;
}

static bool settle_often(struct prb_sampler *sampler, unsigned tries, struct prb_error *err)
{
    while (sampler->open_count && tries-- > 0)
        if (!settle(sampler, err))
            return false;
    return true;
}

/* The kernel's id of a thread in the caller's pid namespace; 0: not known. */
static pid_t task_of(const struct prb_sampler *sampler, const struct prb_tasks *tasks,
                     const struct prb_sampler_slot *slot)
{
    const struct prb_task *task =
        slot->head.native_id ? prb_tasks_by_inner(tasks, slot->head.native_id)
                             : prb_tasks_by_pthread(tasks, sampler->py->mem, slot->head.thread_id);
    return task ? task->tid : 0;
}

/* Tries for each thread that keeps moving: from another CPU, then from its own. */
#define TRIES_APART 12
#define TRIES_BESIDE 8
#define ROUNDS_BESIDE 4 /* the scheduler may move it away from us */

static bool settle_beside(struct prb_sampler *sampler, struct prb_error *err)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    if (!sampler->open_count || !sampler->proc || !prb_proc_live(sampler->proc) ||
        !prb_proc_tids(sampler->proc, &tasks, NULL))
        return true;
    size_t rounds = sampler->open_count * ROUNDS_BESIDE;
    for (size_t i = 0; i < rounds && sampler->open_count; i++) {
        PRB_AUTO(prb_same_cpu) struct prb_same_cpu same = {0};
        size_t thread = sampler->open[i % sampler->open_count];
        pid_t tid = task_of(sampler, &tasks, sampler->slot_of_thread[thread]);
        if (tid && prb_same_cpu_begin(&same, sampler->proc, tid) &&
            !settle_often(sampler, TRIES_BESIDE, err))
            return false;
    }
    return true;
}

/* Until the open threads' readings agree, or tries readings are spent. */
static bool settle_all(struct prb_sampler *sampler, unsigned tries, struct prb_error *err)
{
    if (tries <= TRIES_APART)
        return settle_often(sampler, tries, err);
    return settle_often(sampler, TRIES_APART, err) && settle_beside(sampler, err) &&
           settle_often(sampler, tries - TRIES_APART, err);
}

const struct prb_raw_stacks *prb_sampler_last(const struct prb_sampler *sampler)
{
    return &sampler->result;
}

/* Walk a thread if it changed since it was proven: then it is open. */
static void first_reading(struct prb_sampler *sampler, size_t i)
{
    struct prb_sampler_slot *slot = sampler->slot_of_thread[i];
    slot->moved = false;
    slot->agreed = 0;
    if (slot->unchanged) {
        sampler->result.tries++;
        publish(sampler, i, VERIFIED);
        return;
    }
    walk_thread(sampler, i);
    sampler->open[sampler->open_count++] = i;
}

static void first_readings(struct prb_sampler *sampler)
{
    sampler->open_count = 0;
    for (size_t i = 0; i < sampler->result.thread_count; i++)
        first_reading(sampler, i);
}

/* The threads there are, each read once, and those that moved read again. */
static bool read_threads(struct prb_sampler *sampler, unsigned tries_max, struct prb_error *err)
{
    for (unsigned tries = 0; tries < LIST_TRIES; tries++) {
        if (!list_whole(sampler, tries_max, err) ||
            !batch_room(sampler, sampler->result.thread_count + 1, err) ||
            !fetch_cold(sampler, err))
            return false;
        first_readings(sampler);
        if (tries_max == 1 || !sampler->open_count || !sampler->result.whole)
            return true;
        bool stand = prb_sampler_heads_stand(sampler);
        if (!settle(sampler, err))
            return false;
        if (stand && prb_sampler_threads_lead_on(sampler))
            return true;
    }
    sampler->result.whole = false;
    return true;
}

/* Where one thread keeps the GIL: one system call reads what the active threads touched, then the
 * GIL and the list of threads, which shall be as they were, and, if these threads seem to stand,
 * what is read along.  False: all must be read. */
static bool read_active(struct prb_sampler *sampler)
{
    size_t count = sampler->active_count;
    if (!sampler->active_only || !batch_room(sampler, sampler->result.thread_count + 2, NULL))
        return false;
    bool along = sampler->along && sampler->stood;
    sampler->batch[0] = sampler->lists;
    for (size_t k = 0; k < count; k++)
        sampler->batch[k + 1] = sampler->slot_of_thread[sampler->active[k]]->view;
    if (along)
        sampler->batch[count + 1] = sampler->along;
    bool read = prb_view_refresh(sampler->batch, count + 1 + along, sampler->same, NULL);
    sampler->stood = read;
    for (size_t k = 0; k < count; k++) {
        struct prb_sampler_slot *slot = sampler->slot_of_thread[sampler->active[k]];
        slot->unchanged = slot->verified &= read && sampler->same[k + 1];
        sampler->stood &= slot->unchanged;
    }
    sampler->result.still = sampler->stood && along && sampler->same[count + 1];
    if (!read || !prb_sampler_others_unmoved(sampler)) {
        prb_sampler_forget_gil(sampler);
        return false;
    }
    sampler->result.tries = sampler->result.thread_count - sampler->active_count;
    sampler->open_count = 0;
    for (size_t k = 0; k < sampler->active_count; k++)
        first_reading(sampler, sampler->active[k]);
    return true;
}

/* The threads that may have moved, read once, and what is known of the others. */
static bool read_all(struct prb_sampler *sampler, unsigned tries_max, struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    result->still = false;
    result->active_only = tries_max != 1 && read_active(sampler);
    result->still &= result->active_only;
    if (!result->active_only && !read_threads(sampler, tries_max, err))
        return false;
    result->active = result->active_only ? sampler->active : NULL;
    result->active_count = result->active_only ? sampler->active_count : 0;
    return true;
}

const struct prb_raw_stacks *prb_sampler_take(struct prb_sampler *sampler, unsigned tries_max,
                                              struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    result->tries = result->rejected = 0;
    result->serial++;
    if (!read_all(sampler, tries_max, err)) {
        sampler->active_only = false;
        return NULL;
    }
    if (tries_max != 1 && !settle_all(sampler, tries_max ? tries_max : PRB_TRIES, err))
        return NULL;
    for (size_t k = 0; k < sampler->open_count; k++) {
        size_t i = sampler->open[k];
        bool moved = tries_max != 1 && sampler->slot_of_thread[i]->moved;
        publish(sampler, i, moved ? UNSTABLE : UNPROVEN);
    }
    uint64_t finalizing = 0;
    if (PRB_HAS(&sampler->py->layout, runtime, finalizing) && sampler->py->runtime)
        prb_view_field(sampler->lists, &sampler->py->layout, sampler->py->runtime,
                       PRB_F_runtime_finalizing, &finalizing);
    result->finalizing = finalizing != 0;
    if (!result->active_only)
        prb_sampler_choose_active(sampler);
    sampler->taken = sampler->number;
    return result;
}

bool prb_sampler_reread(struct prb_sampler *sampler, size_t thread, struct prb_error *err)
{
    if (thread >= sampler->result.thread_count)
        return prb_fail(err, PRB_INTERNAL, "thread %zu of %zu", thread,
                        sampler->result.thread_count);
    struct prb_sampler_slot *slot = sampler->slot_of_thread[thread];
    sampler->active_only &= !slot->unmoved; /* what was proven of it is gone */
    if (!prb_view_refresh(&slot->view, 1, NULL, err))
        return false;
    walk_thread(sampler, thread);
    publish(sampler, thread, UNPROVEN);
    return true;
}

static bool same_frames(const struct prb_raw_frame *a, const struct prb_raw_frame *b, size_t count,
                        bool exactly)
{
    for (size_t i = 0; i < count; i++)
        if (a[i].frame != b[i].frame || a[i].code != b[i].code ||
            ((i || exactly) && a[i].instruction != b[i].instruction) ||
            (exactly && (a[i].entry != b[i].entry || a[i].anchor != b[i].anchor)))
            return false;
    return true;
}

bool prb_sampler_unchanged(struct prb_sampler *sampler, size_t thread, bool exactly)
{
    if (thread >= sampler->result.thread_count)
        return false;
    const struct prb_raw_thread *raw = &sampler->result.threads[thread];
    size_t count = raw->frame_count;
    PRB_AUTO_FREE struct prb_raw_frame *before = malloc((count + 1) * sizeof *before);
    if (!before)
        return false;
    if (count)
        memcpy(before, raw->frames, count * sizeof *before);
    return prb_sampler_reread(sampler, thread, NULL) && raw->frame_count == count &&
           same_frames(before, raw->frames, count, exactly);
}
