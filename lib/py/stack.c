/*
 * The sampler: all threads' frame chains, read twice and compared (DESIGN 4.3).
 *
 * Every thread has a view (mem/view.h).  A sample refreshes all views in common system calls, walks
 * each, refreshes again; where the bytes are the same nothing needs a second walk, where they
 * differ the second walk must give the same chain, or that thread is tried again.
 * A stack that was found true stays so while its bytes read the same: of a thread that stands still
 * the last sample was the first of the two readings.
 */
#include "py/stack.h"

#include <string.h>

#include "proc/beside.h"
#include "py/walk.h"

struct slot {
    struct prb_view *view;
    struct prb_walk walk[2]; /* the last two readings */
    int last;                /* which of them is the newest */
    uint64_t seen;           /* sample number */
    prb_addr tstate;
    struct prb_thread_head head;
    prb_addr next;      /* as the list was followed */
    bool moved, agreed; /* in this sample: two readings differed; the last two did not */
    bool verified;      /* the last walk was found true */
    bool unchanged;     /* … and what it touched reads the same again */
    bool cold;          /* nothing of its chain was read yet */
};

struct prb_sampler {
    struct prb_py *py;
    struct prb_proc *proc;  /* NULL: not known */
    struct prb_view *lists; /* the interpreter structs */
    struct slot **slots;    /* open addressing by thread state */
    size_t capacity, used;
    uint64_t number;
    bool anchors;
    struct prb_raw_stacks result;
    size_t interpreter_cap, thread_cap;
    struct slot **slot_of_thread; /* parallel to result.threads */
    size_t slot_cap;
    struct prb_view **batch;
    size_t batch_cap;
    struct slot **batch_slots; /* whose views stand in batch; NULL: no thread's */
    size_t batch_slot_cap;
    bool *same;
    size_t same_cap;
    size_t *open; /* threads of the result that were not found true yet */
    size_t open_count, open_cap;
};

struct prb_sampler *prb_sampler_new(struct prb_py *py, struct prb_proc *proc, struct prb_error *err)
{
    PRB_AUTO(prb_sampler) struct prb_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "sampler"));
    sampler->py = py;
    sampler->proc = proc;
    sampler->capacity = 64;
    sampler->slots = calloc(sampler->capacity, sizeof *sampler->slots);
    sampler->lists = prb_view_new(py->mem, err);
    if (!sampler->lists)
        return NULL;
    if (!sampler->slots)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "sampler"));
    return PRB_STEAL(sampler);
}

static void slot_free(struct slot *slot)
{
    if (!slot)
        return;
    prb_view_free(slot->view);
    prb_walk_deinit(&slot->walk[0]);
    prb_walk_deinit(&slot->walk[1]);
    free(slot);
}

void prb_sampler_free(struct prb_sampler *sampler)
{
    if (!sampler)
        return;
    for (size_t i = 0; sampler->slots && i < sampler->capacity; i++)
        slot_free(sampler->slots[i]);
    free(sampler->slots);
    prb_view_free(sampler->lists);
    free(sampler->result.interpreters);
    free(sampler->result.threads);
    free(sampler->slot_of_thread);
    free(sampler->batch);
    free(sampler->batch_slots);
    free(sampler->same);
    free(sampler->open);
    free(sampler);
}

void prb_sampler_want_anchors(struct prb_sampler *sampler, bool want)
{
    if (sampler->anchors == want)
        return;
    sampler->anchors = want;
    for (size_t i = 0; i < sampler->capacity; i++)
        if (sampler->slots[i])
            sampler->slots[i]->verified = false; /* walked without anchors, or with */
}

/* ---- slots ---- */

static struct slot **slot_place(struct slot **slots, size_t capacity, prb_addr tstate)
{
    size_t i = (size_t)((tstate >> 4) * 0x9e3779b97f4a7c15u >> 20) & (capacity - 1);
    while (slots[i] && slots[i]->tstate != tstate)
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

/* Rehash into capacity places, leaving out the slots of threads that ended. */
static bool rehash(struct prb_sampler *sampler, size_t capacity)
{
    struct slot **slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    sampler->used = 0;
    for (size_t i = 0; i < sampler->capacity; i++) {
        struct slot *slot = sampler->slots[i];
        if (slot && slot->seen + 1 >= sampler->number) {
            *slot_place(slots, capacity, slot->tstate) = slot;
            sampler->used++;
        } else {
            slot_free(slot);
        }
    }
    free(sampler->slots);
    sampler->slots = slots;
    sampler->capacity = capacity;
    return true;
}

static struct slot *slot_for(struct prb_sampler *sampler, prb_addr tstate, struct prb_error *err)
{
    struct slot **place = slot_place(sampler->slots, sampler->capacity, tstate);
    if (*place)
        return *place;
    if ((sampler->used + 1) * 2 > sampler->capacity) {
        if (!rehash(sampler, sampler->capacity) || ((sampler->used + 1) * 2 > sampler->capacity &&
                                                    !rehash(sampler, sampler->capacity * 2)))
            return PRB_NULL(prb_fail(err, PRB_NOMEM, "sampler"));
        place = slot_place(sampler->slots, sampler->capacity, tstate);
    }
    struct slot *slot = calloc(1, sizeof *slot);
    if (!slot || !(slot->view = prb_view_new(sampler->py->mem, err))) {
        if (!slot)
            prb_fail(err, PRB_NOMEM, "sampler");
        free(slot);
        return NULL;
    }
    slot->tstate = tstate;
    slot->cold = true;
    sampler->used++;
    return *place = slot;
}

/* ---- interpreters and threads ---- */

static bool list_word(struct prb_sampler *sampler, prb_addr base, enum prb_field field,
                      uint64_t *out)
{
    return prb_view_field(sampler->lists, &sampler->py->layout, base, field, out);
}

static void read_gil(struct prb_sampler *sampler, struct prb_interpreter *interp)
{
    struct prb_py *py = sampler->py;
    const struct prb_layout *layout = &py->layout;
    uint64_t word = 0, locked = 0;
    if (PRB_IS(layout, gil, STATIC)) {
        if (py->tstate_current && prb_view_u64(sampler->lists, py->tstate_current, &word))
            interp->gil_holder = word;
        interp->gil = py->gil_static;
        return;
    }
    if (PRB_IS(layout, gil, RUNTIME))
        interp->gil = py->runtime + (prb_addr)PRB_OFF(layout, runtime, gil);
    else if (PRB_IS(layout, gil, INTERPRETER) &&
             list_word(sampler, interp->addr, PRB_F_interp_gil, &word))
        interp->gil = word;
    if (interp->gil && list_word(sampler, interp->gil, PRB_F_gil_locked, &locked) &&
        (int32_t)locked > 0 && list_word(sampler, interp->gil, PRB_F_gil_last_holder, &word))
        interp->gil_holder = word;
}

static bool add_interpreter(struct prb_sampler *sampler, prb_addr addr, struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    struct prb_py *py = sampler->py;
    if (!PRB_GROW(result->interpreters, result->interpreter_count, sampler->interpreter_cap))
        return prb_fail(err, PRB_NOMEM, "interpreters");
    struct prb_interpreter *interp = &result->interpreters[result->interpreter_count];
    *interp = (struct prb_interpreter){.addr = addr};
    uint64_t value = 0;
    if (PRB_HAS(&py->layout, interp, id) && list_word(sampler, addr, PRB_F_interp_id, &value))
        interp->id = (int64_t)value;
    value = 0;
    if (PRB_HAS(&py->layout, interp, gc_collecting))
        list_word(sampler, addr, PRB_F_interp_gc_collecting, &value);
    else if (PRB_HAS(&py->layout, runtime, gc_collecting))
        list_word(sampler, py->runtime, PRB_F_runtime_gc_collecting, &value);
    interp->gc = (uint32_t)value != 0;
    read_gil(sampler, interp);
    result->interpreter_count++;
    return true;
}

static int by_id(const void *a, const void *b)
{
    const struct prb_interpreter *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static bool list_interpreters(struct prb_sampler *sampler, struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    result->interpreter_count = 0;
    uint64_t interp = 0;
    if (!prb_view_u64(sampler->lists, sampler->py->interpreters, &interp))
        return prb_fail_addr(err, sampler->py->interpreters, "the interpreter list cannot be read");
    while (interp) {
        if (result->interpreter_count >= PRB_INTERPRETERS_MAX)
            return prb_fail(err, PRB_CORRUPT, "more than %d interpreters", PRB_INTERPRETERS_MAX);
        if (!add_interpreter(sampler, interp, err))
            return false;
        uint64_t next = 0;
        if (!list_word(sampler, interp, PRB_F_interp_next, &next))
            return prb_fail_addr(err, interp, "interpreter state cannot be read");
        interp = next;
    }
    qsort(result->interpreters, result->interpreter_count, sizeof *result->interpreters, by_id);
    return true;
}

static bool add_thread(struct prb_sampler *sampler, size_t interpreter, struct slot *slot,
                       struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    if (!PRB_GROW(result->threads, result->thread_count, sampler->thread_cap) ||
        !PRB_GROW(sampler->slot_of_thread, result->thread_count, sampler->slot_cap))
        return prb_fail(err, PRB_NOMEM, "threads");
    struct prb_raw_thread *thread = &result->threads[result->thread_count];
    *thread = (struct prb_raw_thread){.tstate = slot->tstate, .interpreter = interpreter};
    sampler->slot_of_thread[result->thread_count++] = slot;
    return true;
}

/* A thread state's place in the list; false when it is none of this interpreter's, or seen before:
 * a thread began or ended while we walked. */
static bool in_list(struct prb_sampler *sampler, struct slot *slot, prb_addr interp)
{
    if (slot->seen == sampler->number)
        return false;
    if (slot->seen + 1 != sampler->number) {
        prb_view_clear(slot->view); /* not refreshed with the others: what it holds is old */
        slot->unchanged = false;
        slot->cold = true;
    }
    slot->seen = sampler->number;
    slot->verified &= slot->unchanged;
    return (slot->unchanged ||
            prb_walk_head(&sampler->py->layout, slot->view, slot->tstate, &slot->head)) &&
           slot->head.interp == interp;
}

/* The thread list of one interpreter, newest first as CPython keeps it.  *whole: whether its end
 * was reached. */
static bool list_threads(struct prb_sampler *sampler, size_t interpreter, bool *whole,
                         struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    prb_addr interp = result->interpreters[interpreter].addr;
    uint64_t tstate = 0;
    if (!list_word(sampler, interp, PRB_F_interp_threads_head, &tstate))
        return prb_fail_addr(err, interp, "interpreter state cannot be read");
    while (tstate) {
        if (result->thread_count >= PRB_THREADS_MAX)
            return prb_fail(err, PRB_CORRUPT, "more than %d threads", PRB_THREADS_MAX);
        struct slot *slot = slot_for(sampler, tstate, err);
        if (!slot)
            return false;
        if (!in_list(sampler, slot, interp)) {
            *whole = false;
            break;
        }
        if (!add_thread(sampler, interpreter, slot, err))
            return false;
        tstate = slot->next = slot->head.next;
    }
    return true;
}

static bool list_all(struct prb_sampler *sampler, bool *whole, struct prb_error *err)
{
    sampler->number++;
    sampler->result.thread_count = 0;
    *whole = true;
    if (!list_interpreters(sampler, err))
        return false;
    for (size_t i = 0; i < sampler->result.interpreter_count; i++)
        if (!list_threads(sampler, i, whole, err))
            return false;
    return true;
}

/*
 * A list that was followed while threads began and ended may end early: a thread state that is
 * freed and at once another's has no next one yet.  It stands when its first is still reached from
 * the head, and then its threads still lead on as they did; in this order, as a thread state gets
 * its next one before the head leads to it.
 */
#define BORN_MAX 64
static bool head_leads_to(struct prb_sampler *sampler, prb_addr interp, prb_addr first)
{
    struct prb_py *py = sampler->py;
    uint64_t tstate = 0;
    bool ok = prb_py_field(py, interp, PRB_F_interp_threads_head, &tstate, NULL);
    for (int born = 0; ok && tstate != first && tstate && born < BORN_MAX; born++)
        ok = prb_py_field(py, tstate, PRB_F_thread_next, &tstate, NULL);
    return ok && tstate == first;
}

static bool heads_stand(struct prb_sampler *sampler)
{
    const struct prb_raw_stacks *result = &sampler->result;
    size_t at = 0;
    for (size_t i = 0; i < result->interpreter_count; i++) {
        bool any = at < result->thread_count && result->threads[at].interpreter == i;
        prb_addr first = any ? result->threads[at].tstate : 0;
        if (!head_leads_to(sampler, result->interpreters[i].addr, first))
            return false;
        while (at < result->thread_count && result->threads[at].interpreter == i)
            at++;
    }
    return true;
}

static bool threads_lead_on(const struct prb_sampler *sampler)
{
    for (size_t i = 0; i < sampler->result.thread_count; i++)
        if (sampler->slot_of_thread[i]->head.next != sampler->slot_of_thread[i]->next)
            return false;
    return true;
}

/* ---- passes ---- */

static bool batch_room(struct prb_sampler *sampler, size_t count, struct prb_error *err)
{
    while (sampler->batch_cap < count)
        if (!PRB_GROW(sampler->batch, sampler->batch_cap, sampler->batch_cap))
            return prb_fail(err, PRB_NOMEM, "sampler");
    while (sampler->batch_slot_cap < count)
        if (!PRB_GROW(sampler->batch_slots, sampler->batch_slot_cap, sampler->batch_slot_cap))
            return prb_fail(err, PRB_NOMEM, "sampler");
    while (sampler->open_cap < count)
        if (!PRB_GROW(sampler->open, sampler->open_cap, sampler->open_cap))
            return prb_fail(err, PRB_NOMEM, "sampler");
    while (sampler->same_cap < count)
        if (!PRB_GROW(sampler->same, sampler->same_cap, sampler->same_cap))
            return prb_fail(err, PRB_NOMEM, "sampler");
    return true;
}

/* Bring in what the threads of the last sample touched, all at once, before the lists are walked.
 */
static bool warm_up(struct prb_sampler *sampler, struct prb_error *err)
{
    size_t count = 0;
    if (!batch_room(sampler, sampler->used + 1, err))
        return false;
    sampler->batch_slots[count] = NULL;
    sampler->batch[count++] = sampler->lists;
    for (size_t i = 0; i < sampler->capacity; i++) {
        struct slot *slot = sampler->slots[i];
        if (!slot || slot->seen != sampler->number)
            continue;
        sampler->batch_slots[count] = slot;
        sampler->batch[count++] = slot->view;
    }
    if (!prb_view_refresh(sampler->batch, count, sampler->same, err))
        return false;
    for (size_t k = 1; k < count; k++)
        sampler->batch_slots[k]->unchanged = sampler->batch_slots[k]->verified && sampler->same[k];
    return true;
}

/* The first reading of new threads' chains: announced, then fetched together. */
static bool fetch_cold(struct prb_sampler *sampler, struct prb_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < sampler->result.thread_count; i++) {
        struct slot *slot = sampler->slot_of_thread[i];
        if (!slot->cold)
            continue;
        prb_walk_announce(&sampler->py->layout, slot->view, slot->tstate, &slot->head);
        slot->cold = false;
        sampler->batch[count++] = slot->view;
    }
    return count == 0 || prb_view_refresh(sampler->batch, count, NULL, err);
}

/* Threads begin and end while their list is walked: until it was seen whole, or often enough (a
 * list that is damaged gives what can be had). */
#define LIST_TRIES 32
static bool list_whole(struct prb_sampler *sampler, unsigned tries_max, struct prb_error *err)
{
    bool *whole = &sampler->result.whole;
    *whole = false;
    for (unsigned tries = 0; !*whole && tries < (tries_max == 1 ? 1 : LIST_TRIES); tries++)
        if (!warm_up(sampler, err) || !list_all(sampler, whole, err))
            return false;
    return true;
}

/* The ids with the frames: a thread state bears its maker's ids until its thread begins. */
static void walk_thread(struct prb_sampler *sampler, size_t i)
{
    struct slot *slot = sampler->slot_of_thread[i];
    slot->last ^= 1;
    prb_walk_head(&sampler->py->layout, slot->view, slot->tstate, &slot->head);
    prb_walk_thread(sampler->py, slot->view, slot->tstate, sampler->anchors,
                    &slot->walk[slot->last]);
}

enum verdict { UNPROVEN, VERIFIED, UNSTABLE };

static void publish(struct prb_sampler *sampler, size_t i, enum verdict verdict)
{
    struct slot *slot = sampler->slot_of_thread[i];
    const struct prb_walk *walk = &slot->walk[slot->last];
    struct prb_raw_thread *thread = &sampler->result.threads[i];
    thread->thread_id = slot->head.thread_id;
    thread->native_id = slot->head.native_id;
    thread->frames = walk->frames;
    thread->frame_count = walk->count;
    thread->broken = walk->broken;
    thread->error = walk->error;
    thread->unstable = verdict == UNSTABLE;
    slot->verified = verdict == VERIFIED;
}

/* Read the open threads again; those whose readings agree are published: at once, or twice running
 * when they were seen to move, because two torn readings can be equal by chance.  A broken chain is
 * never agreement, as a frame is broken while it is made.  The others stay open. */
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
        struct slot *slot = sampler->slot_of_thread[i];
        sampler->result.tries++;
        bool agree = sampler->same[k] && !slot->walk[slot->last].broken;
        if (!sampler->same[k]) {
            walk_thread(sampler, i);
            agree = prb_walk_equal(&slot->walk[0], &slot->walk[1]);
        }
        if (agree && (!slot->moved || slot->agreed)) {
            publish(sampler, i, VERIFIED);
            continue;
        }
        sampler->result.rejected += !agree;
        slot->moved |= !agree;
        slot->agreed = agree;
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
                     const struct slot *slot)
{
    const struct prb_task *task =
        slot->head.native_id ? prb_tasks_by_inner(tasks, slot->head.native_id)
                             : prb_tasks_by_pthread(tasks, sampler->py->mem, slot->head.thread_id);
    return task ? task->tid : 0;
}

/* Of each thread that will not stand still, how often from another processor, then from its own. */
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
        PRB_AUTO(prb_beside) struct prb_beside beside = {0};
        size_t thread = sampler->open[i % sampler->open_count];
        pid_t tid = task_of(sampler, &tasks, sampler->slot_of_thread[thread]);
        if (tid && prb_beside_begin(&beside, sampler->proc, tid) &&
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

/* Walk what changed since it was found true; those threads are open. */
static void first_readings(struct prb_sampler *sampler)
{
    sampler->open_count = 0;
    for (size_t i = 0; i < sampler->result.thread_count; i++) {
        struct slot *slot = sampler->slot_of_thread[i];
        slot->moved = slot->agreed = false;
        if (slot->unchanged) {
            sampler->result.tries++;
            publish(sampler, i, VERIFIED);
            continue;
        }
        walk_thread(sampler, i);
        sampler->open[sampler->open_count++] = i;
    }
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
        bool stand = heads_stand(sampler);
        if (!settle(sampler, err))
            return false;
        if (stand && threads_lead_on(sampler))
            return true;
    }
    sampler->result.whole = false;
    return true;
}

const struct prb_raw_stacks *prb_sampler_take(struct prb_sampler *sampler, unsigned tries_max,
                                              struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    result->tries = result->rejected = 0;
    if (!read_threads(sampler, tries_max, err))
        return NULL;
    if (tries_max != 1 && !settle_all(sampler, tries_max ? tries_max : PRB_TRIES, err))
        return NULL;
    for (size_t k = 0; k < sampler->open_count; k++) {
        size_t i = sampler->open[k];
        bool moved = tries_max != 1 && sampler->slot_of_thread[i]->moved;
        publish(sampler, i, moved ? UNSTABLE : UNPROVEN);
    }
    uint64_t finalizing = 0;
    if (PRB_HAS(&sampler->py->layout, runtime, finalizing) && sampler->py->runtime)
        list_word(sampler, sampler->py->runtime, PRB_F_runtime_finalizing, &finalizing);
    result->finalizing = finalizing != 0;
    return result;
}

bool prb_sampler_again(struct prb_sampler *sampler, size_t thread, struct prb_error *err)
{
    if (thread >= sampler->result.thread_count)
        return prb_fail(err, PRB_INTERNAL, "thread %zu of %zu", thread,
                        sampler->result.thread_count);
    struct slot *slot = sampler->slot_of_thread[thread];
    if (!prb_view_refresh(&slot->view, 1, NULL, err))
        return false;
    walk_thread(sampler, thread);
    publish(sampler, thread, UNPROVEN);
    return true;
}
