/*
 * The stacks of a target: every runtime is sampled, its threads identified, their chains made into
 * rows.
 */
#include <string.h>
#include <time.h>

#include "inspect/look.h"
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

bool prb_look_wants(const struct prb_look *look, uint64_t thread_id, const struct prb_task *task)
{
    uint64_t only = look->options->only_thread;
    return !only || only == thread_id || (task && only == (uint64_t)task->tid);
}

struct prb_thread *prb_look_thread(struct prb_look *look, struct prb_error *err)
{
    struct prb_stacks *stacks = &look->box->stacks;
    if (!PRB_GROW(stacks->threads, stacks->thread_count, look->box->thread_cap))
        return PRB_NULL(prb_nomem(err));
    struct prb_thread *thread = &stacks->threads[stacks->thread_count];
    *thread = (struct prb_thread){.interpreter = -1};
    return thread;
}

void prb_look_task(struct prb_look *look, const struct prb_task *task, struct prb_thread *thread)
{
    if (!task)
        return;
    /* Read only now: most readings are of some threads only. */
    if (!task->state)
        prb_proc_task_read(look->target->proc, &look->tasks->items[task - look->tasks->items]);
    thread->os_thread_id = task->tid;
    thread->os_state = task->state;
    thread->comm = task->comm[0] ? prb_arena_strdup(&look->box->arena, task->comm) : NULL;
    thread->active = task->state == 'R';
    look->covered[task - look->tasks->items] = true;
}

#define PATIENCE_NS 1000000 /* of one look with threads that may wait for the GIL */

static void fill_python_side(struct prb_look *look, size_t i, struct prb_thread *thread)
{
    const struct prb_raw_thread *raw = &look->raw->threads[i];
    const struct prb_interpreter *interpreter = &look->raw->interpreters[raw->interpreter];
    const struct prb_task *task = look->facts[i].task;
    prb_look_task(look, task, thread);
    thread->interpreter = interpreter->id;
    thread->thread_id = raw->thread_id;
    thread->name = look->facts[i].name ? look->facts[i].name : thread->comm;
    thread->unstable = raw->unstable;
    thread->has_python = true;
    thread->gc = look->facts[i].collects;
    if (interpreter->gil_holder == raw->tstate) {
        thread->gil = PRB_GIL_HOLDING;
        thread->active = true;
    } else if (prb_thread_waits_for_gil(look->target, look->runtime, interpreter, task,
                                        &look->patience_ns)) {
        thread->gil = PRB_GIL_WAITING;
    }
}

static bool fill_python_rows(struct prb_look *look, const struct prb_raw_thread *raw,
                             struct prb_thread *thread, struct prb_error *err)
{
    thread->frames = prb_look_rows(look, raw->frame_count, err);
    if (!thread->frames)
        return false;
    for (size_t i = 0; i < raw->frame_count; i++)
        thread->frames[thread->frame_count++] = prb_look_python_row(look, &raw->frames[i]);
    if (raw->broken)
        thread->frames[thread->frame_count++] = prb_look_broken_row(look, &raw->error);
    return true;
}

static bool fill_rows(struct prb_look *look, struct prb_native_look *native, size_t i,
                      struct prb_thread *thread, struct prb_error *err)
{
    struct prb_error why = {0};
    thread->frame_count = 0;
    if (!native)
        return fill_python_rows(look, &look->raw->threads[i], thread, err);
    if (prb_native_look_rows(look, native, i, thread, &why))
        return true;
    return fill_python_rows(look, &look->raw->threads[i], thread, err);
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

/* A verified chain names a code object that has ended since: the thread went on. */
static bool code_went(const struct prb_raw_thread *raw, const struct prb_thread *thread)
{
    size_t broken = 0;
    for (size_t i = 0; i < thread->frame_count; i++)
        broken += thread->frames[i].kind == PRB_FRAME_BROKEN;
    return broken > raw->broken;
}

/* Rows of a thread; if its code objects end while they are read, it is read again. */
static bool fill_living_rows(struct prb_look *look, struct prb_native_look *native, size_t i,
                             struct prb_thread *thread, struct prb_error *err)
{
    const struct prb_raw_thread *raw = &look->raw->threads[i];
    if (!fill_rows(look, native, i, thread, err))
        return false;
    for (int tries = 0; !native && tries < LOCALS_TRIES && code_went(raw, thread); tries++) {
        PRB_AUTO(chain_copy) struct chain_copy before = {0};
        if (!prb_sampler_reread(look->runtime->sampler, i, err) || !chain_copy(&before, raw, err) ||
            !fill_rows(look, native, i, thread, err) ||
            !prb_sampler_reread(look->runtime->sampler, i, err))
            return false;
        thread->unstable = !same_chain(raw, &before);
    }
    return true;
}

/* Locals are read behind the chain: believed only when the chain is still the same after them. */
static bool fill_stable_rows(struct prb_look *look, struct prb_native_look *native, size_t i,
                             struct prb_thread *thread, struct prb_error *err)
{
    const struct prb_raw_thread *raw = &look->raw->threads[i];
    if (!prb_proc_live(look->target->proc))
        return fill_rows(look, native, i, thread, err);
    if (!look->options->locals)
        return fill_living_rows(look, native, i, thread, err);
    for (int tries = 0; tries < LOCALS_TRIES; tries++) {
        PRB_AUTO(chain_copy) struct chain_copy before = {0};
        if (!chain_copy(&before, raw, err) || !fill_rows(look, native, i, thread, err) ||
            !prb_sampler_reread(look->runtime->sampler, i, err))
            return false;
        if (same_chain(raw, &before))
            return true;
        prb_objects_clear(look->runtime->objects);
    }
    thread->unstable = true;
    return true;
}

/* ---- one reading ---- */

static bool add_python_threads(struct prb_look *look, struct prb_native_look *native,
                               struct prb_error *err)
{
    for (size_t k = look->raw->thread_count; k-- > 0;) { /* CPython lists the newest first */
        const struct prb_raw_thread *raw = &look->raw->threads[k];
        const struct prb_task *task = look->facts[k].task;
        if (task)
            look->covered[task - look->tasks->items] = true;
        if ((raw->interpreter != 0 && !look->options->all_interpreters) ||
            prb_thread_unborn(look->raw, k) || !prb_look_wants(look, raw->thread_id, task))
            continue;
        struct prb_thread *thread = prb_look_thread(look, err);
        if (!thread)
            return false;
        fill_python_side(look, k, thread);
        if (!fill_stable_rows(look, native, k, thread, err) ||
            !prb_look_raised(look, raw, thread, err))
            return false;
        look->box->stacks.thread_count++;
    }
    return true;
}

/* One sample, and who its threads are.  *facts_out is the caller's to free. */
static bool sample(struct prb_look *look, unsigned tries, struct prb_thread_facts **facts_out,
                   struct prb_error *err)
{
    look->raw = prb_sampler_take(look->runtime->sampler, tries, err);
    if (!look->raw)
        return false;
    if (!look->raw->whole)
        look->box->stacks.warning =
            "the list of threads could not be read to its end: some are missing";
    look->box->stacks.tries += look->raw->tries;
    look->box->stacks.rejected += look->raw->rejected;
    struct prb_thread_facts *facts = calloc(look->raw->thread_count + 1, sizeof *facts);
    if (!facts)
        return prb_nomem(err);
    free(*facts_out);
    *facts_out = look->facts = facts;
    prb_threads_identify(look->target, look->runtime, look->raw, look->tasks, &look->box->arena,
                         facts);
    prb_threads_find_collectors(look->target, look->runtime, look->raw, facts);
    return true;
}

static bool fill_threads(struct prb_look *look, struct prb_error *err)
{
    prb_look_folders(look);
    PRB_AUTO(prb_native_look) struct prb_native_look *native = NULL;
    if (look->options->native && !(native = prb_native_look_take(look, err)))
        return false;
    return add_python_threads(look, native, err);
}

/*
 * ---- all threads at one moment ----
 *
 * Decoding takes ten times as long as copying, and nobody may stand for it.  So the stacks are read
 * of the running program first, which tells the pages that decoding needs; then the threads stand
 * while those are copied at once and the chains are walked; and the copy is decoded when they run
 * again.  What the copy lacks, since the program went on between, is read as it is by then: most
 * pages of a program serve again and again.
 */

/* While the threads are stopped. */
static bool copy_still(void *context, struct prb_error *err)
{
    struct prb_look *look = context;
    if (!prb_mem_record_renew(look->target->mem, err))
        return false;
    prb_mem_record_set(look->target->mem, PRB_RECORD_STILL);
    return prb_sampler_take(look->runtime->sampler, 2, err) != NULL;
}

static bool stop_and_copy(struct prb_look *look, struct prb_error *err)
{
    size_t count = 0;
    PRB_AUTO_FREE pid_t *tids = calloc(look->raw->thread_count + 1, sizeof *tids);
    if (!tids)
        return prb_nomem(err);
    for (size_t i = 0; i < look->raw->thread_count; i++)
        if (look->facts[i].task)
            tids[count++] = look->facts[i].task->tid;

    double stood = 0;
    bool good = prb_stop_threads(look->target->proc, tids, count, copy_still, look, &stood, err);
    if (stood > look->box->stacks.longest_stop)
        look->box->stacks.longest_stop = stood;
    return good;
}

/* Threads that were filled to learn what filling reads. */
static void unfill(struct prb_look *look, size_t before)
{
    look->box->stacks.thread_count = before;
    look->box->stacks.warning = NULL;
    for (size_t i = 0; i < look->raw->thread_count; i++)
        if (look->facts[i].task)
            look->covered[look->facts[i].task - look->tasks->items] = false;
}

static bool take_still(struct prb_look *look, struct prb_thread_facts **facts,
                       struct prb_error *err)
{
    struct prb_mem *mem = look->target->mem;
    size_t before = look->box->stacks.thread_count;
    prb_mem_record_set(mem, PRB_RECORD_ON);
    bool good = sample(look, 0, facts, err) && fill_threads(look, err);
    if (good) {
        unfill(look, before);
        prb_objects_clear(look->runtime->objects);
        good = stop_and_copy(look, err) && sample(look, 1, facts, err) && fill_threads(look, err);
    }
    prb_mem_record_set(mem, look->target->recording ? PRB_RECORD_ON : PRB_RECORD_OFF);
    return good;
}

/* With native frames each thread is stopped by itself, chain and registers together: no need to
 * stop all. */
static bool take_runtime(struct prb_look *look, struct prb_error *err)
{
    const struct prb_runtime *runtime = look->runtime;
    bool live = prb_proc_live(look->target->proc);
    PRB_AUTO_FREE struct prb_thread_facts *facts = NULL;
    prb_codes_new_reading(runtime->py);
    prb_objects_clear(runtime->objects);
    prb_sampler_want_anchors(runtime->sampler, look->options->native);
    if (look->options->stop && live && !look->options->native)
        return take_still(look, &facts, err);
    return sample(look, live ? 0 : 1, &facts, err) && fill_threads(look, err);
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
    struct prb_look look = {.target = target,
                            .options = options,
                            .tasks = &tasks,
                            .covered = covered,
                            .box = box,
                            .patience_ns = PATIENCE_NS};
    if (target->unwinder)
        prb_unwinder_forget_all(target->unwinder);
    for (size_t i = 0; i < target->runtime_count; i++) {
        look.runtime = &target->runtimes[i];
        if (!take_runtime(&look, err))
            return false;
    }
    return !options->native || options->python_only || prb_native_threads(&look, err);
}

void prb_look_time(struct prb_target *target, double *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = prb_proc_exists(target->proc) ? (double)now.tv_sec + 1e-9 * (double)now.tv_nsec
                                         : prb_proc_time(target->proc);
}

void prb_look_info(struct prb_arena *arena, const struct prb_target_info *info,
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
    prb_look_time(target, &stacks->time);
    prb_look_info(&box->arena, &target->info, &stacks->target);
    bool ok = take_all(target, options, box, err);
    /* Whatever was or was not read of a target that ended, or became another program, is no answer.
     */
    if (!prb_proc_check(target->proc, err) || !ok)
        return NULL;
    if (options->only_thread && !stacks->thread_count)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "no thread %llu in process %d",
                                 (unsigned long long)options->only_thread, (int)target->info.pid));
    return PRB_STEAL(stacks);
}
