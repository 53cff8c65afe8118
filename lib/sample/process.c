/*
 * One process that is sampled: its threads, and one sample of all of them (process.h).
 */
#include "sample/process.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/syscalls.h"
#include "proc/stat.h"

#define NAME_TRIES_MAX 6  /* a thread that threading does not know has no name */
#define IDENTIFY_SHARE 10 /* of all time, at most one part in so many goes into names */

static void thread_free(struct prb_sampled_thread *thread)
{
    prb_activity_deinit(&thread->activity);
    free(thread->chain);
    free(thread->task_rows.rows);
    free(thread);
}

static void naming_deinit(struct prb_runtime_names *naming)
{
    prb_view_free(naming->codes);
    free(naming->thread_of);
}

void prb_sampled_process_free(struct prb_sampled_process *process)
{
    if (!process)
        return;
    for (size_t i = 0; i < process->thread_count; i++)
        thread_free(process->threads[i]);
    for (size_t i = 0; process->names && i < process->target->runtime_count; i++)
        naming_deinit(&process->names[i]);
    free(process->names);
    free(process->threads);
    free(process->due);
    free(process->instructions);
    free(process->pcs);
    prb_index_deinit(&process->pc_index);
    prb_index_deinit(&process->thread_index);
    prb_index_deinit(&process->instruction_index);
    prb_arena_deinit(&process->arena);
    if (process->pidfd >= 0)
        close(process->pidfd);
    if (process->target)
        prb_target_close(process->target);
    free(process);
}

/* ---- a new process ---- */

static pid_t parent_of(struct prb_proc *proc)
{
    struct prb_stat stat;
    return prb_stat_read(proc, "stat", &stat) ? (pid_t)stat.field[PRB_STAT_PPID] : 0;
}

static void describe(struct prb_sampled_process *process, double start)
{
    struct prb_profile_box *box = process->box;
    const struct prb_target_info *info = prb_target_info(process->target);
    struct prb_process ranks = {.rank = -1};
    prb_process_ranks(process->target->proc, &ranks);
    const struct prb_profile_process row = {
        .pid = info->pid,
        .ppid = parent_of(process->target->proc),
        .command = prb_profile_text(box, info->command),
        .python = prb_profile_text(box, info->python),
        .rank = ranks.rank,
        .start = start,
        .end = start,
    };
    process->index = prb_profile_process(box, &row);
    prb_profile_find_root(box, process->index, info->pid);
}

static bool prepare_naming(struct prb_sampled_process *process, struct prb_error *err)
{
    struct prb_target *target = process->target;
    process->names = calloc(target->runtime_count, sizeof *process->names);
    if (!process->names)
        return prb_nomem(err);
    for (size_t i = 0; i < target->runtime_count; i++) {
        struct prb_runtime *runtime = &target->runtimes[i];
        if (!(process->names[i].codes = prb_view_new(runtime->py->mem, PRB_VIEW_UNIT_MAX, err)))
            return false;
        prb_sampler_expect_many(runtime->sampler);
        prb_sampler_read_along(runtime->sampler, process->names[i].codes);
        prb_sampler_want_anchors(runtime->sampler, process->options->native);
        if (!prb_sampler_take(runtime->sampler, 0, err))
            return false;
        const struct prb_raw_stacks *raw = prb_sampler_last(runtime->sampler);
        if (raw->interpreter_count)
            prb_folders_read(runtime, raw->interpreters[0].addr, &process->arena,
                             &process->names[i].folders);
        prb_objects_clear(runtime->objects);
    }
    return true;
}

struct prb_sampled_process *prb_sampled_process_new(struct prb_profile_box *box,
                                                    const struct prb_profiler_options *options,
                                                    pid_t pid, double start, struct prb_error *err)
{
    PRB_AUTO(prb_sampled_process) struct prb_sampled_process *process = calloc(1, sizeof *process);
    if (!process)
        return PRB_NULL(prb_nomem(err));
    process->pidfd = -1;
    process->box = box;
    process->options = options;
    process->target = prb_target_open_pid(pid, err);
    if (!process->target || !prepare_naming(process, err))
        return NULL;
    process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    describe(process, start);
    return PRB_STEAL(process);
}

/* ---- threads ---- */

static uint64_t hash_thread(uint32_t runtime, prb_addr tstate)
{
    return prb_hash_words(tstate, runtime);
}

static uint64_t thread_hash(const void *items, uint32_t item)
{
    const struct prb_sampled_thread *thread =
        ((const struct prb_sampled_process *)items)->threads[item];
    return hash_thread(thread->runtime, thread->tstate);
}

static bool thread_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_sampled_thread *a = ((const struct prb_sampled_process *)items)->threads[item],
                                    *b = key;
    return a->runtime == b->runtime && a->tstate == b->tstate && a->thread_id == b->thread_id &&
           a->native_id == b->native_id;
}

static const struct prb_index_kind thread_kind = {thread_hash, thread_same};

static struct prb_sampled_thread *new_thread(struct prb_sampled_process *process,
                                             const struct prb_sampled_thread *like)
{
    struct prb_sampled_thread *thread = calloc(1, sizeof *thread);
    if (!thread || !PRB_GROW(process->threads, process->thread_count, process->thread_cap)) {
        free(thread);
        process->box->failed = true;
        return NULL;
    }
    *thread = *like;
    thread->weight = PRB_NO_ITEM;
    prb_activity_init(&thread->activity, 0, 0);
    const struct prb_profile_thread row = {.process = process->index, .thread_id = like->thread_id};
    thread->index = prb_profile_thread(process->box, &row);
    process->threads[process->thread_count] = thread;
    if (!prb_index_add(&process->thread_index, &thread_kind, process,
                       hash_thread(thread->runtime, thread->tstate),
                       (uint32_t)process->thread_count)) {
        process->box->failed = true;
        free(thread);
        return NULL;
    }
    process->thread_count++;
    process->unnamed = true;
    return thread;
}

static struct prb_sampled_thread *thread_of(struct prb_sampled_process *process, size_t runtime,
                                            const struct prb_raw_thread *raw)
{
    const struct prb_sampled_thread key = {.runtime = (uint32_t)runtime,
                                           .tstate = raw->tstate,
                                           .thread_id = raw->thread_id,
                                           .native_id = raw->native_id};
    uint32_t item = prb_index_find(&process->thread_index, &thread_kind, process,
                                   hash_thread(key.runtime, key.tstate), &key);
    return item != PRB_NO_ITEM ? process->threads[item] : new_thread(process, &key);
}

/* Remove threads that have ended. */
static void leave(struct prb_sampled_process *process, uint64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < process->thread_count; i++) {
        struct prb_sampled_thread *thread = process->threads[i];
        if (thread->seen == process->number) {
            process->threads[kept++] = thread;
            continue;
        }
        prb_close_interval(process, thread, now);
        thread_free(thread);
    }
    if (kept == process->thread_count)
        return;
    process->thread_count = kept;
    prb_index_clear(&process->thread_index);
    for (size_t i = 0; i < kept; i++)
        prb_index_add(&process->thread_index, &thread_kind, process,
                      thread_hash(process, (uint32_t)i), (uint32_t)i);
}

/* ---- who they are ---- */

static void introduce(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                      const struct prb_thread_facts *facts)
{
    struct prb_profile_thread *row = &process->box->threads[thread->index];
    thread->name_tries++;
    if (facts->task && !thread->has_task) {
        struct prb_task task = *facts->task;
        thread->has_task = true;
        row->tid = task.tid;
        prb_activity_init(&thread->activity, prb_proc_pid(process->target->proc), task.tid);
        if (!facts->name && !row->name && prb_proc_task_read(process->target->proc, &task))
            row->name = prb_profile_text(process->box, task.comm);
    }
    if (facts->name) {
        row->name = prb_profile_text(process->box, facts->name);
        thread->name_tries = NAME_TRIES_MAX;
    }
}

static bool identify_runtime(struct prb_sampled_process *process, size_t k,
                             const struct prb_tasks *tasks)
{
    const struct prb_runtime *runtime = &process->target->runtimes[k];
    const struct prb_raw_stacks *raw = prb_sampler_last(runtime->sampler);
    PRB_AUTO(prb_arena) struct prb_arena arena = {0};
    PRB_AUTO_FREE struct prb_thread_facts *facts = calloc(raw->thread_count + 1, sizeof *facts);
    bool left = false;
    if (!facts)
        return false;
    prb_objects_clear(runtime->objects);
    prb_threads_identify(process->target, runtime, raw, tasks, &arena, facts);
    for (size_t i = 0; i < process->thread_count; i++) {
        struct prb_sampled_thread *thread = process->threads[i];
        if (thread->runtime != k || thread->seen != process->number ||
            thread->name_tries >= NAME_TRIES_MAX)
            continue;
        introduce(process, thread, &facts[thread->raw]);
        left |= thread->name_tries < NAME_TRIES_MAX;
    }
    return left;
}

/* Names and kernel threads of new threads, from the dict of threading: some 50 us. */
static void identify(struct prb_sampled_process *process)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    uint64_t before = prb_clock_ns();
    if (!process->unnamed || before < process->identify_after ||
        !prb_proc_tids(process->target->proc, &tasks, NULL))
        return;
    process->unnamed = false;
    for (size_t k = 0; k < process->target->runtime_count; k++)
        process->unnamed |= identify_runtime(process, k, &tasks);
    uint64_t after = prb_clock_ns();
    process->identify_after = after + (after - before) * IDENTIFY_SHARE;
}

/* ---- one sample ---- */

static bool read_runtimes(struct prb_sampled_process *process, struct prb_error *err)
{
    for (size_t k = 0; k < process->target->runtime_count; k++) {
        const struct prb_raw_stacks *raw =
            prb_sampler_take(process->target->runtimes[k].sampler, 0, err);
        if (!raw)
            return false;
        process->box->profile.tries += raw->tries;
        process->box->profile.rejected += raw->rejected;
    }
    return true;
}

static void name_thread(struct prb_sampled_process *process, struct prb_sampled_thread *thread)
{
    if (prb_name_thread(process, thread, thread->raw))
        thread->with_tasks =
            process->options->async ? prb_async_stack(process, thread, thread->raw) : thread->node;
}

static void begin_names(struct prb_sampled_process *process, size_t k, uint64_t now)
{
    prb_name_begin(process, k);
    if (process->options->async)
        prb_async_begin(process, k, now);
}

/* Find or make the sampled thread of every thread of a runtime, and name its stack. */
static bool match_threads(struct prb_sampled_process *process, size_t k, uint64_t now,
                          struct prb_error *err)
{
    const struct prb_raw_stacks *raw = prb_sampler_last(process->target->runtimes[k].sampler);
    begin_names(process, k, now);
    for (size_t i = raw->thread_count; i-- > 0;) { /* CPython lists the newest first */
        const struct prb_raw_thread *one = &raw->threads[i];
        if ((one->interpreter != 0 && !process->options->all_interpreters) ||
            prb_thread_unborn(raw, i))
            continue;
        struct prb_sampled_thread *thread = thread_of(process, k, one);
        if (!thread)
            return prb_nomem(err);
        thread->seen = process->number;
        thread->raw = i;
        name_thread(process, thread);
    }
    return true;
}

static void count_reading(struct prb_sampled_process *process)
{
    process->box->profile.samples++;
    process->box->processes[process->index].samples++;
}

static bool sample_everyone(struct prb_sampled_process *process, const struct prb_moment *moment,
                            struct prb_error *err)
{
    for (size_t k = 0; k < process->target->runtime_count; k++)
        if (!match_threads(process, k, moment->now, err))
            return false;
    identify(process);
    if (process->options->native && !prb_native_begin(process, moment->now, err))
        return false;
    count_reading(process);
    for (size_t i = 0; i < process->thread_count; i++) {
        struct prb_sampled_thread *thread = process->threads[i];
        if (thread->seen == process->number)
            prb_count_thread(process, thread, moment);
        thread->counted = process->number;
    }
    leave(process, moment->now);
    prb_idle_begin(process);
    return true;
}

static bool sample_those_due(struct prb_sampled_process *process, const struct prb_moment *moment,
                             struct prb_error *err)
{
    if (process->options->native && !prb_native_begin(process, moment->now, err))
        return false;
    process->number++;
    for (size_t k = 0; k < process->target->runtime_count; k++)
        begin_names(process, k, moment->now);
    for (size_t i = 0; i < process->thread_count; i++)
        if (process->due[i] <= process->number)
            name_thread(process, process->threads[i]);
    count_reading(process);
    for (size_t i = 0; i < process->thread_count; i++) {
        struct prb_sampled_thread *thread = process->threads[i];
        if (process->due[i] > process->number)
            continue;
        prb_idle_count_missed(process, thread, process->number - 1 - thread->counted);
        prb_count_thread(process, thread, moment);
        thread->counted = process->number;
        process->due[i] = prb_idle_next_visit(process, thread);
    }
    return true;
}

void prb_sampled_process_catch_up(struct prb_sampled_process *process)
{
    for (size_t i = 0; process->may_skip && i < process->thread_count; i++) {
        struct prb_sampled_thread *thread = process->threads[i];
        prb_idle_count_missed(process, thread, process->number - thread->counted);
        thread->counted = process->number;
    }
}

static bool sample(struct prb_sampled_process *process, const struct prb_moment *moment,
                   struct prb_error *err)
{
    if (!read_runtimes(process, err))
        return false;
    if (prb_idle_proven(process))
        return sample_those_due(process, moment, err);
    prb_sampled_process_catch_up(process);
    process->may_skip = false;
    process->number++;
    return sample_everyone(process, moment, err);
}

bool prb_sampled_process_sample(struct prb_sampled_process *process,
                                const struct prb_moment *moment, struct prb_error *err)
{
    struct prb_profile_box *box = process->box;
    if (!sample(process, moment, err)) {
        prb_sampled_process_catch_up(process);
        process->may_skip = false;
        return false;
    }
    box->processes[process->index].end = 1e-9 * (double)moment->now;
    return !box->failed || prb_nomem(err);
}

void prb_sampled_process_close(struct prb_sampled_process *process, uint64_t now)
{
    prb_sampled_process_catch_up(process);
    for (size_t i = 0; i < process->thread_count; i++)
        prb_close_interval(process, process->threads[i], now);
}
