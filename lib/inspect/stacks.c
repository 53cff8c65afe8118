/*
 * The stacks of a target: samples each runtime, identifies its threads, and makes rows of their
 * frames.
 */
#include <string.h>

#include "base/clock.h"
#include "inspect/reading.h"
#include "native/stop_all.h"

#define LOCALS_TRIES 4 /* readings of a thread's locals before it is called unstable */

void prb_stacks_free(struct prb_stacks *stacks)
{
    if (!stacks)
        return;
    struct prb_stacks_box *box = (struct prb_stacks_box *)stacks;
    free(stacks->threads);
    prb_arena_deinit(&box->arena);
    free(box);
}
PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)

/* ---- threads ---- */

bool prb_reading_wants(const struct prb_reading *reading, uint64_t thread_id,
                       const struct prb_task *task)
{
    uint64_t only = reading->options->only_thread;
    return !only || only == thread_id || (task && only == (uint64_t)task->tid);
}

struct prb_thread *prb_reading_thread(struct prb_reading *reading, struct prb_error *err)
{
    struct prb_stacks *stacks = &reading->box->stacks;
    if (!PRB_GROW(stacks->threads, stacks->thread_count, reading->box->thread_cap))
        return PRB_NULL(prb_nomem(err));
    struct prb_thread *thread = &stacks->threads[stacks->thread_count];
    *thread = (struct prb_thread){.interpreter = -1};
    return thread;
}

void prb_reading_task(struct prb_reading *reading, const struct prb_task *task,
                      struct prb_thread *thread)
{
    if (!task)
        return;
    /* Read only now: most readings want only some threads. */
    if (!task->state)
        prb_proc_task_read(reading->target->proc,
                           &reading->tasks->items[task - reading->tasks->items]);
    thread->os_thread_id = task->tid;
    thread->os_state = task->state;
    thread->comm = task->comm[0] ? prb_arena_strdup(&reading->box->arena, task->comm) : NULL;
    thread->active = task->state == 'R';
    reading->covered[task - reading->tasks->items] = true;
}

#define PATIENCE_NS 1000000 /* spent in one reading on threads that may wait for the GIL */

static void fill_python_side(struct prb_reading *reading, size_t i, struct prb_thread *thread)
{
    const struct prb_raw_thread *raw = &reading->raw->threads[i];
    const struct prb_interpreter *interpreter = &reading->raw->interpreters[raw->interpreter];
    const struct prb_task *task = reading->facts[i].task;
    prb_reading_task(reading, task, thread);
    thread->interpreter = interpreter->id;
    thread->thread_id = raw->thread_id;
    thread->name = reading->facts[i].name ? reading->facts[i].name : thread->comm;
    thread->unstable = raw->unstable;
    thread->has_python = true;
    thread->gc = reading->facts[i].collects;
    if (interpreter->gil_holder == raw->tstate) {
        thread->gil = PRB_GIL_HOLDING;
        thread->active = true;
    } else if (prb_thread_waits_for_gil(reading->target, reading->runtime, interpreter, task,
                                        &reading->patience_ns)) {
        thread->gil = PRB_GIL_WAITING;
    }
}

static bool fill_python_rows(struct prb_reading *reading, const struct prb_raw_thread *raw,
                             struct prb_thread *thread, struct prb_error *err)
{
    thread->frames = prb_reading_rows(reading, raw->frame_count, err);
    if (!thread->frames)
        return false;
    for (size_t i = 0; i < raw->frame_count; i++)
        thread->frames[thread->frame_count++] = prb_reading_python_row(reading, &raw->frames[i]);
    if (raw->broken.why)
        thread->frames[thread->frame_count++] = prb_reading_broken_chain(reading, &raw->broken);
    return true;
}

static bool fill_rows(struct prb_reading *reading, struct prb_native_reading *native, size_t i,
                      struct prb_thread *thread, struct prb_error *err)
{
    struct prb_error why = {0};
    thread->frame_count = 0;
    if (!native)
        return fill_python_rows(reading, &reading->raw->threads[i], thread, err);
    if (prb_native_reading_rows(reading, native, i, thread, &why))
        return true;
    return fill_python_rows(reading, &reading->raw->threads[i], thread, err);
}

/* ---- locals of a moving target ---- */

struct chain_copy {
    struct prb_raw_frame *frames;
    size_t count;
};
static void chain_copy_deinit(struct chain_copy *copy) { free(copy->frames); }
PRB_DEFINE_AUTO(chain_copy, struct chain_copy, chain_copy_deinit)

static bool chain_copy(struct chain_copy *copy, const struct prb_raw_thread *raw,
                       struct prb_error *err)
{
    copy->count = raw->frame_count;
    copy->frames = malloc((raw->frame_count + 1) * sizeof *copy->frames);
    if (!copy->frames)
        return prb_nomem(err);
    if (copy->count)
        memcpy(copy->frames, raw->frames, copy->count * sizeof *copy->frames);
    return true;
}

static bool same_chain(const struct prb_raw_thread *now, const struct chain_copy *before)
{
    if (now->frame_count != before->count)
        return false;
    for (size_t i = 0; i < before->count; i++) {
        const struct prb_raw_frame *a = &now->frames[i], *b = &before->frames[i];
        if (a->frame != b->frame || a->code != b->code || (i && a->instruction != b->instruction))
            return false;
    }
    return true;
}

/* A code object of the verified chain was freed meanwhile: the thread went on. */
static bool code_went(const struct prb_raw_thread *raw, const struct prb_thread *thread)
{
    size_t broken = 0;
    for (size_t i = 0; i < thread->frame_count; i++)
        broken += thread->frames[i].kind == PRB_FRAME_BROKEN;
    return broken > (raw->broken.why != NULL);
}

/* The rows of a thread, read again if its code objects are freed meanwhile. */
static bool fill_living_rows(struct prb_reading *reading, struct prb_native_reading *native,
                             size_t i, struct prb_thread *thread, struct prb_error *err)
{
    const struct prb_raw_thread *raw = &reading->raw->threads[i];
    if (!fill_rows(reading, native, i, thread, err))
        return false;
    for (int tries = 0; !native && tries < LOCALS_TRIES && code_went(raw, thread); tries++) {
        PRB_AUTO(chain_copy) struct chain_copy before = {0};
        prb_codes_new_reading(reading->runtime->py);
        if (!prb_sampler_reread(reading->runtime->sampler, i, err) ||
            !chain_copy(&before, raw, err) || !fill_rows(reading, native, i, thread, err) ||
            !prb_sampler_reread(reading->runtime->sampler, i, err))
            return false;
        thread->unstable = !same_chain(raw, &before);
    }
    return true;
}

/* Locals are read after the chain: they are true only if the chain is still the same then. */
static bool fill_stable_rows(struct prb_reading *reading, struct prb_native_reading *native,
                             size_t i, struct prb_thread *thread, struct prb_error *err)
{
    const struct prb_raw_thread *raw = &reading->raw->threads[i];
    if (!prb_proc_live(reading->target->proc))
        return fill_rows(reading, native, i, thread, err);
    if (!reading->options->locals)
        return fill_living_rows(reading, native, i, thread, err);
    for (int tries = 0; tries < LOCALS_TRIES; tries++) {
        PRB_AUTO(chain_copy) struct chain_copy before = {0};
        if (!chain_copy(&before, raw, err) || !fill_rows(reading, native, i, thread, err) ||
            !prb_sampler_reread(reading->runtime->sampler, i, err))
            return false;
        if (same_chain(raw, &before))
            return true;
        prb_objects_clear(reading->runtime->objects);
        prb_codes_new_reading(reading->runtime->py);
    }
    thread->unstable = true;
    return true;
}

/* ---- one reading ---- */

/* Whether Python thread k is asked for. */
static bool wanted(const struct prb_reading *reading, size_t k)
{
    const struct prb_raw_thread *raw = &reading->raw->threads[k];
    return (raw->interpreter == 0 || reading->options->all_interpreters) &&
           !prb_thread_unborn(reading->raw, k) &&
           prb_reading_wants(reading, raw->thread_id, reading->facts[k].task);
}

/* Bring in the code objects of all rows. */
static void expect_codes(const struct prb_reading *reading)
{
    PRB_AUTO(prb_hash_map) struct prb_hash_map seen = {0};
    PRB_AUTO_FREE prb_addr *codes = NULL;
    size_t count = 0, cap = 0;
    for (size_t k = 0; k < reading->raw->thread_count; k++) {
        const struct prb_raw_thread *raw = &reading->raw->threads[k];
        const size_t frames = wanted(reading, k) ? raw->frame_count : 0;
        for (size_t i = 0; i < frames; i++) {
            struct prb_hash_slot *slot =
                raw->frames[i].code ? prb_hash_map_add(&seen, raw->frames[i].code) : NULL;
            if (!slot || slot->number || !PRB_GROW(codes, count, cap))
                continue;
            slot->number = 1;
            codes[count++] = raw->frames[i].code;
        }
    }
    prb_codes_expect(reading->runtime->py, codes, count);
}

static bool add_python_threads(struct prb_reading *reading, struct prb_native_reading *native,
                               struct prb_error *err)
{
    for (size_t k = reading->raw->thread_count; k-- > 0;) { /* CPython lists the newest first */
        const struct prb_raw_thread *raw = &reading->raw->threads[k];
        const struct prb_task *task = reading->facts[k].task;
        if (task)
            reading->covered[task - reading->tasks->items] = true;
        if (!wanted(reading, k))
            continue;
        struct prb_thread *thread = prb_reading_thread(reading, err);
        if (!thread)
            return false;
        fill_python_side(reading, k, thread);
        if (!fill_stable_rows(reading, native, k, thread, err) ||
            !prb_reading_raised(reading, raw, thread, err))
            return false;
        reading->box->stacks.thread_count++;
    }
    return true;
}

/* The first reading is the only one of most commands.  What is read of the stacks again needs what
 * was read of them. */
static bool may_rest(const struct prb_reading *reading)
{
    const struct prb_stack_options *options = reading->options;
    return reading->raw->serial == 1 && !options->native && !options->locals && !options->stop;
}

/* Take a sample and identify its threads.  The caller frees *facts_out. */
static bool sample(struct prb_reading *reading, unsigned tries, struct prb_thread_facts **facts_out,
                   struct prb_error *err)
{
    reading->raw = prb_sampler_take(reading->runtime->sampler, tries, err);
    if (!reading->raw)
        return false;
    if (may_rest(reading))
        prb_sampler_rest(reading->runtime->sampler);
    if (!reading->raw->whole)
        reading->box->stacks.warning =
            "the list of threads could not be read to its end: some are missing";
    reading->box->stacks.tries += reading->raw->tries;
    reading->box->stacks.rejected += reading->raw->rejected;
    struct prb_thread_facts *facts = calloc(reading->raw->thread_count + 1, sizeof *facts);
    if (!facts)
        return prb_nomem(err);
    free(*facts_out);
    *facts_out = reading->facts = facts;
    prb_threads_identify(reading->target, reading->runtime, reading->raw, reading->tasks,
                         &reading->box->arena, facts);
    prb_threads_find_collectors(reading->target, reading->runtime, reading->raw, facts);
    return true;
}

static bool fill_threads(struct prb_reading *reading, struct prb_error *err)
{
    prb_reading_folders(reading);
    expect_codes(reading);
    PRB_AUTO(prb_native_reading) struct prb_native_reading *native = NULL;
    if (reading->options->native && !(native = prb_native_reading_take(reading, err)))
        return false;
    return add_python_threads(reading, native, err);
}

/*
 * ---- all threads at one moment ----
 *
 * Decoding takes ten times as long as copying, too long to stop the threads.  So the stacks are
 * read from the running program first, which shows what pages decoding needs.  Then the threads are
 * stopped while these pages are copied at once and the chains are walked.  The copy is decoded
 * when they run again.  A page that is not in the copy, since the program went on in between, is
 * read as it is then; that is rare: most readings need the same pages.
 */

/* While the threads are stopped: what is decoded afterwards stands still. */
static bool copy_still(void *context, struct prb_error *err)
{
    struct prb_reading *reading = context;
    if (!prb_mem_record_renew(reading->target->mem, err))
        return false;
    prb_mem_record_set(reading->target->mem, PRB_RECORD_STILL);
    return prb_sampler_take(reading->runtime->sampler, 2, err) != NULL;
}

static bool stop_and_copy(struct prb_reading *reading, struct prb_error *err)
{
    size_t count = 0;
    PRB_AUTO_FREE pid_t *tids = calloc(reading->raw->thread_count + 1, sizeof *tids);
    if (!tids)
        return prb_nomem(err);
    for (size_t i = 0; i < reading->raw->thread_count; i++)
        if (reading->facts[i].task)
            tids[count++] = reading->facts[i].task->tid;

    double stopped = 0;
    bool good =
        prb_stop_threads(reading->target->proc, tids, count, copy_still, reading, &stopped, err);
    if (stopped > reading->box->stacks.longest_stop)
        reading->box->stacks.longest_stop = stopped;
    return good;
}

/* Forget the threads that were filled to learn what filling reads. */
static void unfill(struct prb_reading *reading, size_t before)
{
    reading->box->stacks.thread_count = before;
    reading->box->stacks.warning = NULL;
    for (size_t i = 0; i < reading->raw->thread_count; i++)
        if (reading->facts[i].task)
            reading->covered[reading->facts[i].task - reading->tasks->items] = false;
}

static bool take_still(struct prb_reading *reading, struct prb_thread_facts **facts,
                       struct prb_error *err)
{
    struct prb_mem *mem = reading->target->mem;
    size_t before = reading->box->stacks.thread_count;
    prb_mem_record_set(mem, PRB_RECORD_ON);
    bool good = sample(reading, 0, facts, err) && fill_threads(reading, err);
    if (good) {
        unfill(reading, before);
        prb_objects_clear(reading->runtime->objects);
        prb_codes_new_reading(reading->runtime->py);
        good = stop_and_copy(reading, err) && sample(reading, 1, facts, err) &&
               fill_threads(reading, err);
    }
    prb_mem_record_set(mem, reading->target->recording ? PRB_RECORD_ON : PRB_RECORD_OFF);
    return good;
}

/* With native frames each thread is stopped alone, for its chain and registers together: no need
 * to stop all. */
static bool take_runtime(struct prb_reading *reading, struct prb_error *err)
{
    const struct prb_runtime *runtime = reading->runtime;
    bool live = prb_proc_live(reading->target->proc);
    PRB_AUTO_FREE struct prb_thread_facts *facts = NULL;
    prb_codes_new_reading(runtime->py);
    prb_objects_clear(runtime->objects);
    prb_sampler_want_anchors(runtime->sampler, reading->options->native);
    if (reading->options->stop && live && !reading->options->native)
        return take_still(reading, &facts, err);
    return sample(reading, live ? 0 : 1, &facts, err) && fill_threads(reading, err);
}

static bool take_all(struct prb_target *target, const struct prb_stack_options *options,
                     struct prb_stacks_box *box, struct prb_error *err)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    if (!prb_proc_tids(target->proc, &tasks, err))
        return false;
    PRB_AUTO_FREE bool *covered = calloc(tasks.count + 1, sizeof *covered);
    if (!covered)
        return prb_nomem(err);
    PRB_AUTO(prb_reading)
    struct prb_reading reading = {.target = target,
                                  .options = options,
                                  .tasks = &tasks,
                                  .covered = covered,
                                  .box = box,
                                  .patience_ns = PATIENCE_NS};
    if (target->unwinder)
        prb_unwinder_forget_all(target->unwinder);
    for (size_t i = 0; i < target->runtime_count; i++) {
        reading.runtime = &target->runtimes[i];
        if (!take_runtime(&reading, err))
            return false;
    }
    return !options->native || options->python_only || prb_native_threads(&reading, err);
}

void prb_reading_time(struct prb_target *target, double *out)
{
    *out = prb_proc_exists(target->proc) ? prb_clock_epoch_s() : prb_proc_time(target->proc);
}

void prb_reading_info(struct prb_arena *arena, const struct prb_target_info *info,
                      struct prb_target_info *copy)
{
    *copy = *info;
    copy->command = info->command ? prb_arena_strdup(arena, info->command) : NULL;
    copy->executable = info->executable ? prb_arena_strdup(arena, info->executable) : NULL;
    copy->python = info->python ? prb_arena_strdup(arena, info->python) : NULL;
    copy->layout = info->layout ? prb_arena_strdup(arena, info->layout) : NULL;
}

struct prb_stacks *prb_stacks_take(struct prb_target *target,
                                   const struct prb_stack_options *options, struct prb_error *err)
{
    static const struct prb_stack_options defaults;
    struct prb_stacks_box *box = calloc(1, sizeof *box);
    if (!box)
        return PRB_NULL(prb_nomem(err));
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = &box->stacks;
    options = options ? options : &defaults;
    prb_reading_time(target, &stacks->time);
    prb_reading_info(&box->arena, &target->info, &stacks->target);
    bool ok = take_all(target, options, box, err);
    /* What was read of a target that ended, or became another program, is not an answer. */
    if (!prb_proc_check(target->proc, err) || !ok)
        return NULL;
    if (options->only_thread && !stacks->thread_count)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "process %d has no thread %llu",
                                 (int)target->info.pid, (unsigned long long)options->only_thread));
    return PRB_STEAL(stacks);
}
