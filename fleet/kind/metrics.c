/*
 * What is measured of each rank, for Prometheus (format/metrics.h).  No args.  A part is an array of one object: pid,
 * command, rss, cpu, threads, step, and stack, a number that stands for the main thread's Python stack; what is not
 * known is left out.  result: struct prb_rank_objects.
 */
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/index.h"
#include "fleet/kind/answers.h"
#include "format/json.h"
#include "proc/stat.h"
#include "table/recorded/last_step.h"

PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)

/* A child has one rank: where it is in that one's ring. */
static struct prb_step_reader *steps;

static uint64_t add_text(uint64_t hash, const char *text)
{
    return text ? prb_hash_words(hash, prb_hash_bytes(text, strlen(text))) : hash;
}

static uint64_t hash_of(const struct prb_thread *thread)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < thread->frame_count; i++) {
        const struct prb_frame *frame = &thread->frames[i];
        hash = add_text(add_text(hash, frame->name), frame->filename);
        hash = prb_hash_words(hash, (uint64_t)(unsigned)frame->line);
    }
    return hash;
}

static void add_process(json_t *out, const struct prb_stat *stat)
{
    const double ticks = (double)(stat->field[PRB_STAT_UTIME] + stat->field[PRB_STAT_STIME]);
    json_object_set_new(out, "cpu", json_real(ticks / (double)sysconf(_SC_CLK_TCK)));
    json_object_set_new(out, "rss",
                        json_integer(stat->field[PRB_STAT_RSS] * sysconf(_SC_PAGESIZE)));
    json_object_set_new(out, "threads", json_integer(stat->field[PRB_STAT_THREADS]));
    if (!steps)
        steps = prb_step_reader_new(stat->pid, (uint64_t)stat->field[PRB_STAT_STARTTIME]);
    int64_t step = steps ? prb_step_reader_last(steps) : -1;
    if (step >= 0)
        json_object_set_new(out, "step", json_integer(step));
}

/* It may not be Python yet, or not be ours to read: then its stack is not known. */
static void add_stack(struct prb_fleet_seat *seat, json_t *out)
{
    const struct prb_stack_options main_thread = {.only_thread = (uint64_t)seat->member.pid};
    struct prb_target *target = prb_fleet_seat_target(seat, NULL);
    if (!target)
        return;
    const char *command = prb_target_info(target)->command;
    PRB_AUTO(prb_stacks) struct prb_stacks *stacks = prb_stacks_take(target, &main_thread, NULL);
    if (command)
        json_object_set_new(out, "command", prb_json_text(command));
    for (size_t i = 0; stacks && i < stacks->thread_count; i++)
        if (!stacks->threads[i].unstable)
            json_object_set_new(out, "stack",
                                json_integer((json_int_t)hash_of(&stacks->threads[i])));
    if (!stacks && !seat->db) { /* the next look may find it well */
        prb_target_close(seat->target);
        seat->target = NULL;
    }
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    char folder[32];
    struct prb_stat stat;
    (void)args;
    snprintf(folder, sizeof folder, "/proc/%d", (int)seat->member.pid);
    if (!prb_stat_of(folder, &stat) || stat.count < PRB_STAT_RSS)
        return prb_fail(err, PRB_GONE, "process %d has ended", (int)seat->member.pid);
    PRB_AUTO(json_t) json_t *one = json_pack("{s:i}", "pid", (int)seat->member.pid);
    add_process(one, &stat);
    add_stack(seat, one);
    PRB_AUTO_FREE char *text = json_dumps(one, JSON_COMPACT);
    if (!text)
        return prb_nomem(err);
    prb_buf_addf(out, "[%s]", text);
    return prb_buf_ok(out) || prb_nomem(err);
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    (void)args;
    return prb_objects_of_host(result, reply, err);
}

const struct prb_fleet_kind prb_fleet_kind_metrics = {
    .name = "metrics",
    .budget = 5,
    .of_rank = of_rank,
    .at_root = at_root,
};
