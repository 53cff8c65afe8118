/*
 * One process that is sampled: its threads' seats, and one sample of all of them (member.h).
 */
#include "sample/member.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "proc/stat.h"

#define ASKED_MAX 6       /* a thread that threading does not know has no name */
#define IDENTIFY_SHARE 10 /* of the time between two samples, at the most one part in so many */

static void seat_free(struct prb_seat *seat)
{
    prb_doing_deinit(&seat->doing);
    free(seat->chain);
    free(seat->between.rows);
    free(seat);
}

static void naming_deinit(struct prb_naming *naming)
{
    prb_view_free(naming->codes);
    free(naming->seat_of);
}

void prb_member_free(struct prb_member *member)
{
    if (!member)
        return;
    for (size_t i = 0; i < member->seat_count; i++)
        seat_free(member->seats[i]);
    for (size_t i = 0; member->naming && i < member->target->runtime_count; i++)
        naming_deinit(&member->naming[i]);
    free(member->naming);
    free(member->seats);
    free(member->due);
    free(member->places);
    free(member->spots);
    prb_index_deinit(&member->spot_index);
    prb_index_deinit(&member->seat_index);
    prb_index_deinit(&member->place_index);
    prb_arena_deinit(&member->arena);
    if (member->pidfd >= 0)
        close(member->pidfd);
    if (member->target)
        prb_target_close(member->target);
    free(member);
}

/* ---- a new member ---- */

static pid_t parent_of(struct prb_proc *proc)
{
    struct prb_stat stat;
    return prb_stat_read(proc, "stat", &stat) ? (pid_t)stat.field[PRB_STAT_PPID] : 0;
}

static void describe(struct prb_member *member, double start)
{
    struct prb_profile_box *box = member->box;
    const struct prb_target_info *info = prb_target_info(member->target);
    struct prb_process ranks = {.rank = -1};
    prb_process_ranks(member->target->proc, &ranks);
    const struct prb_profile_process process = {
        .pid = info->pid,
        .ppid = parent_of(member->target->proc),
        .command = prb_profile_text(box, info->command),
        .python = prb_profile_text(box, info->python),
        .rank = ranks.rank,
        .start = start,
        .end = start,
    };
    member->process = prb_profile_process(box, &process);
    prb_profile_find_root(box, member->process, info->pid);
}

static bool prepare_naming(struct prb_member *member, struct prb_error *err)
{
    struct prb_target *target = member->target;
    member->naming = calloc(target->runtime_count, sizeof *member->naming);
    if (!member->naming)
        return prb_fail(err, PRB_NOMEM, "profile");
    for (size_t i = 0; i < target->runtime_count; i++) {
        struct prb_runtime *runtime = &target->runtimes[i];
        if (!(member->naming[i].codes = prb_view_new(runtime->py->mem, err)))
            return false;
        prb_sampler_want_anchors(runtime->sampler, member->options->native);
        if (!prb_sampler_take(runtime->sampler, 0, err))
            return false;
        const struct prb_raw_stacks *raw = prb_sampler_last(runtime->sampler);
        if (raw->interpreter_count)
            prb_folders_read(runtime, raw->interpreters[0].addr, &member->arena,
                             &member->naming[i].folders);
        prb_objects_clear(runtime->objects);
    }
    return true;
}

struct prb_member *prb_member_new(struct prb_profile_box *box,
                                  const struct prb_profiler_options *options, pid_t pid,
                                  double start, struct prb_error *err)
{
    PRB_AUTO(prb_member) struct prb_member *member = calloc(1, sizeof *member);
    if (!member)
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "profile"));
    member->pidfd = -1;
    member->box = box;
    member->options = options;
    member->target = prb_target_open_pid(pid, err);
    if (!member->target || !prepare_naming(member, err))
        return NULL;
    member->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    describe(member, start);
    return PRB_STEAL(member);
}

/* ---- seats ---- */

static uint64_t hash_seat(uint32_t runtime, prb_addr tstate)
{
    return prb_hash_words(tstate, runtime);
}

static uint64_t seat_hash(const void *items, uint32_t item)
{
    const struct prb_seat *seat = ((const struct prb_member *)items)->seats[item];
    return hash_seat(seat->runtime, seat->tstate);
}

static bool seat_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_seat *a = ((const struct prb_member *)items)->seats[item], *b = key;
    return a->runtime == b->runtime && a->tstate == b->tstate && a->thread_id == b->thread_id &&
           a->native_id == b->native_id;
}

static const struct prb_index_kind seat_kind = {seat_hash, seat_same};

static struct prb_seat *new_seat(struct prb_member *member, const struct prb_seat *like)
{
    struct prb_seat *seat = calloc(1, sizeof *seat);
    if (!seat || !PRB_GROW(member->seats, member->seat_count, member->seat_cap)) {
        free(seat);
        member->box->failed = true;
        return NULL;
    }
    *seat = *like;
    seat->weight = PRB_NO_ITEM;
    prb_doing_init(&seat->doing, 0, 0);
    const struct prb_profile_thread thread = {.process = member->process,
                                              .thread_id = like->thread_id};
    seat->thread = prb_profile_thread(member->box, &thread);
    member->seats[member->seat_count] = seat;
    if (!prb_index_add(&member->seat_index, &seat_kind, member,
                       hash_seat(seat->runtime, seat->tstate), (uint32_t)member->seat_count)) {
        member->box->failed = true;
        free(seat);
        return NULL;
    }
    member->seat_count++;
    member->newcomers = true;
    return seat;
}

static struct prb_seat *seat_of(struct prb_member *member, size_t runtime,
                                const struct prb_raw_thread *raw)
{
    const struct prb_seat key = {.runtime = (uint32_t)runtime,
                                 .tstate = raw->tstate,
                                 .thread_id = raw->thread_id,
                                 .native_id = raw->native_id};
    uint32_t item = prb_index_find(&member->seat_index, &seat_kind, member,
                                   hash_seat(key.runtime, key.tstate), &key);
    return item != PRB_NO_ITEM ? member->seats[item] : new_seat(member, &key);
}

/* Threads that were not there any more. */
static void leave(struct prb_member *member, uint64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < member->seat_count; i++) {
        struct prb_seat *seat = member->seats[i];
        if (seat->seen == member->number) {
            member->seats[kept++] = seat;
            continue;
        }
        prb_close_stay(member, seat, now);
        seat_free(seat);
    }
    if (kept == member->seat_count)
        return;
    member->seat_count = kept;
    prb_index_clear(&member->seat_index);
    for (size_t i = 0; i < kept; i++)
        prb_index_add(&member->seat_index, &seat_kind, member, seat_hash(member, (uint32_t)i),
                      (uint32_t)i);
}

/* ---- who they are ---- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void introduce(struct prb_member *member, struct prb_seat *seat,
                      const struct prb_thread_facts *facts)
{
    struct prb_profile_thread *thread = &member->box->threads[seat->thread];
    seat->asked++;
    if (facts->task && !seat->has_task) {
        struct prb_task task = *facts->task;
        seat->has_task = true;
        thread->tid = task.tid;
        prb_doing_init(&seat->doing, prb_proc_pid(member->target->proc), task.tid);
        if (!facts->name && !thread->name && prb_proc_task_look(member->target->proc, &task))
            thread->name = prb_profile_text(member->box, task.comm);
    }
    if (facts->name) {
        thread->name = prb_profile_text(member->box, facts->name);
        seat->asked = ASKED_MAX;
    }
}

static bool identify_runtime(struct prb_member *member, size_t k, const struct prb_tasks *tasks)
{
    const struct prb_runtime *runtime = &member->target->runtimes[k];
    const struct prb_raw_stacks *raw = prb_sampler_last(runtime->sampler);
    PRB_AUTO(prb_arena) struct prb_arena arena = {0};
    PRB_AUTO_FREE struct prb_thread_facts *facts = calloc(raw->thread_count + 1, sizeof *facts);
    bool left = false;
    if (!facts)
        return false;
    prb_objects_clear(runtime->objects);
    prb_threads_identify(member->target, runtime, raw, tasks, &arena, facts);
    for (size_t i = 0; i < member->seat_count; i++) {
        struct prb_seat *seat = member->seats[i];
        if (seat->runtime != k || seat->seen != member->number || seat->asked >= ASKED_MAX)
            continue;
        introduce(member, seat, &facts[seat->raw]);
        left |= seat->asked < ASKED_MAX;
    }
    return left;
}

/* Names and kernel threads of those that are new: a look at the dict of threading, some 50 us. */
static void identify(struct prb_member *member)
{
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    uint64_t before = now_ns();
    if (!member->newcomers || before < member->identify_after ||
        !prb_proc_tids(member->target->proc, &tasks, NULL))
        return;
    member->newcomers = false;
    for (size_t k = 0; k < member->target->runtime_count; k++)
        member->newcomers |= identify_runtime(member, k, &tasks);
    uint64_t after = now_ns();
    member->identify_after = after + (after - before) * IDENTIFY_SHARE;
}

/* ---- one sample ---- */

static bool read_runtimes(struct prb_member *member, struct prb_error *err)
{
    for (size_t k = 0; k < member->target->runtime_count; k++) {
        const struct prb_raw_stacks *raw =
            prb_sampler_take(member->target->runtimes[k].sampler, 0, err);
        if (!raw)
            return false;
        member->box->profile.tries += raw->tries;
        member->box->profile.rejected += raw->rejected;
    }
    return true;
}

static void name_seat(struct prb_member *member, struct prb_seat *seat)
{
    if (prb_name_thread(member, seat, seat->raw))
        seat->whole =
            member->options->async ? prb_async_stack(member, seat, seat->raw) : seat->node;
}

static void begin_names(struct prb_member *member, size_t k, uint64_t now)
{
    prb_name_begin(member, k);
    if (member->options->async)
        prb_async_begin(member, k, now);
}

/* All threads of a runtime have their seats, and names. */
static bool seat_runtime(struct prb_member *member, size_t k, uint64_t now, struct prb_error *err)
{
    const struct prb_raw_stacks *raw = prb_sampler_last(member->target->runtimes[k].sampler);
    begin_names(member, k, now);
    for (size_t i = raw->thread_count; i-- > 0;) { /* CPython lists the newest first */
        const struct prb_raw_thread *thread = &raw->threads[i];
        if ((thread->interpreter != 0 && !member->options->all_interpreters) ||
            prb_thread_unborn(raw, i))
            continue;
        struct prb_seat *seat = seat_of(member, k, thread);
        if (!seat)
            return prb_fail(err, PRB_NOMEM, "profile");
        seat->seen = member->number;
        seat->raw = i;
        name_seat(member, seat);
    }
    return true;
}

static bool sample_everyone(struct prb_member *member, const struct prb_moment *moment,
                            struct prb_error *err)
{
    for (size_t k = 0; k < member->target->runtime_count; k++)
        if (!seat_runtime(member, k, moment->now, err))
            return false;
    identify(member);
    if (member->options->native && !prb_native_begin(member, moment->now, err))
        return false;
    member->box->profile.samples++;
    for (size_t i = 0; i < member->seat_count; i++) {
        struct prb_seat *seat = member->seats[i];
        if (seat->seen == member->number)
            prb_count_seat(member, seat, moment);
        seat->counted = member->number;
    }
    leave(member, moment->now);
    prb_rest_begin(member);
    return true;
}

static bool sample_those_due(struct prb_member *member, const struct prb_moment *moment,
                             struct prb_error *err)
{
    if (member->options->native && !prb_native_begin(member, moment->now, err))
        return false;
    member->number++;
    for (size_t k = 0; k < member->target->runtime_count; k++)
        begin_names(member, k, moment->now);
    for (size_t i = 0; i < member->seat_count; i++)
        if (member->due[i] <= member->number)
            name_seat(member, member->seats[i]);
    member->box->profile.samples++;
    for (size_t i = 0; i < member->seat_count; i++) {
        struct prb_seat *seat = member->seats[i];
        if (member->due[i] > member->number)
            continue;
        prb_rest_missed(member, seat, member->number - 1 - seat->counted);
        prb_count_seat(member, seat, moment);
        seat->counted = member->number;
        member->due[i] = prb_rest_next(member, seat);
    }
    return true;
}

void prb_member_catch_up(struct prb_member *member)
{
    for (size_t i = 0; member->may_rest && i < member->seat_count; i++) {
        struct prb_seat *seat = member->seats[i];
        prb_rest_missed(member, seat, member->number - seat->counted);
        seat->counted = member->number;
    }
}

static bool sample(struct prb_member *member, const struct prb_moment *moment,
                   struct prb_error *err)
{
    if (!read_runtimes(member, err))
        return false;
    if (prb_rest_stands(member))
        return sample_those_due(member, moment, err);
    prb_member_catch_up(member);
    member->may_rest = false;
    member->number++;
    return sample_everyone(member, moment, err);
}

bool prb_member_sample(struct prb_member *member, const struct prb_moment *moment,
                       struct prb_error *err)
{
    struct prb_profile_box *box = member->box;
    if (!sample(member, moment, err)) {
        prb_member_catch_up(member);
        member->may_rest = false;
        return false;
    }
    box->processes[member->process].end = 1e-9 * (double)moment->now;
    return !box->failed || prb_fail(err, PRB_NOMEM, "profile");
}

void prb_member_close(struct prb_member *member, uint64_t now)
{
    prb_member_catch_up(member);
    for (size_t i = 0; i < member->seat_count; i++)
        prb_close_stay(member, member->seats[i], now);
}
