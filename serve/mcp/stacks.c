/* Where each thread is: threads with equal stacks together, and who has the GIL. */
#include <string.h>

#include "format/json.h"
#include "serve/doors/life.h"
#include "serve/live/watch.h"
#include "serve/mcp/mcp.h"

PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)
PRB_DEFINE_AUTO_PTR(prb_stack_groups, struct prb_stack_groups, prb_stack_groups_free)

#define FRAMES_SHOWN 40

static json_t *frames_json(const struct prb_thread *thread)
{
    json_t *frames = json_array();
    for (size_t i = 0; i < thread->frame_count && i < FRAMES_SHOWN; i++) {
        const struct prb_frame *frame = &thread->frames[i];
        char text[400];
        snprintf(text, sizeof text, "%s (%s:%d)", frame->qualname ? frame->qualname : frame->name,
                 frame->filename ? frame->filename
                 : frame->module ? frame->module
                                 : "?",
                 frame->line);
        json_array_append_new(frames, prb_json_text(text));
    }
    if (thread->frame_count > FRAMES_SHOWN)
        json_array_append_new(
            frames, json_sprintf("… and %zu outer frames", thread->frame_count - FRAMES_SHOWN));
    return frames;
}

static bool is_wanted(const struct prb_stacks *stacks, const struct prb_stack_group *group,
                      const char *thread)
{
    char tid[16];
    for (size_t i = 0; thread && i < group->count; i++) {
        const struct prb_thread *one = &stacks->threads[group->threads[i]];
        snprintf(tid, sizeof tid, "%d", (int)one->os_thread_id);
        if (strcmp(thread, tid) == 0 || (one->name && strcmp(thread, one->name) == 0))
            return true;
    }
    return !thread;
}

static json_t *seconds_json(double since) { return since < 0 ? json_null() : json_real(since); }

/* since: of each thread of stacks.  The group has not changed for as long as its last thread has not. */
static json_t *group_json(const struct prb_stacks *stacks, const struct prb_stack_group *group,
                          const double *since)
{
    json_t *threads = json_array();
    double least = since[group->threads[0]];
    for (size_t i = 0; i < group->count; i++) {
        const struct prb_thread *one = &stacks->threads[group->threads[i]];
        double own = since[group->threads[i]];
        least = own < least ? own : least;
        if (i < FRAMES_SHOWN)
            json_array_append_new(threads,
                                  json_pack("{s:i,s:o,s:b,s:o}", "id", (int)one->os_thread_id,
                                            "name", prb_json_text(one->name), "active", one->active,
                                            "since", seconds_json(own)));
    }
    return json_pack("{s:I,s:o,s:o,s:o}", "count", (json_int_t)group->count, "since",
                     seconds_json(least), "threads", threads, "frames",
                     frames_json(&stacks->threads[group->threads[0]]));
}

/* Since when each thread stands, as the server has seen it; -1: nobody has.  The caller frees it. */
static double *since_of(const struct prb_mcp *mcp, const struct prb_stacks *stacks)
{
    double *since = calloc(stacks->thread_count + 1, sizeof *since);
    for (size_t i = 0; since && i < stacks->thread_count; i++)
        since[i] = -1;
    if (since && mcp->serve && stacks->target.kind == PRB_TARGET_PROCESS)
        prb_watch_since(mcp->serve->watch, stacks->target.pid,
                        prb_serve_started(stacks->target.pid), stacks, since);
    return since;
}

/* Who has the GIL, by a second look at that thread where the first had no native frames. */
static json_t *gil_json(struct prb_serve_target *held, const struct prb_stacks *stacks, bool native)
{
    char holder[300] = "", again[300] = "";
    prb_gil_holder_of(stacks, holder, sizeof holder);
    for (size_t i = 0; i < stacks->thread_count && !native && *holder; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        const struct prb_stack_options options = {
            .native = true, .hide_secrets = true, .only_thread = (uint64_t)thread->os_thread_id};
        if (thread->gil != PRB_GIL_HOLDING)
            continue;
        PRB_AUTO(prb_stacks)
        struct prb_stacks *one = prb_stacks_take(prb_serve_target_open(held), &options, NULL);
        if (one)
            prb_gil_holder_of(one, again, sizeof again);
        break;
    }
    return *again ? prb_json_text(again) : *holder ? prb_json_text(holder) : json_null();
}

static bool stacks(struct prb_mcp_call *call, struct prb_error *err)
{
    json_t *groups = json_array();
    prb_mcp_put(call, "groups", groups);
    const struct prb_stack_options options = {
        .native = json_is_true(json_object_get(call->arguments, "native")), .hide_secrets = true};
    json_int_t limit = prb_mcp_number(call, "limit", 20);
    if (prb_mcp_is_job(call))
        return prb_mcp_job_stacks(call, (size_t)limit, err);
    PRB_AUTO(prb_serve_target) struct prb_serve_target *held = prb_mcp_hold(call, false, err);
    PRB_AUTO(prb_stacks)
    struct prb_stacks *taken =
        held ? prb_stacks_take(prb_serve_target_open(held), &options, err) : NULL;
    PRB_AUTO(prb_stack_groups)
    struct prb_stack_groups *grouped = taken ? prb_stacks_group(taken, err) : NULL;
    if (!grouped)
        return false;
    PRB_AUTO_FREE double *since = since_of(call->mcp, taken);
    if (!since)
        return prb_nomem(err);
    for (size_t i = 0; i < grouped->count; i++) {
        if (!is_wanted(taken, &grouped->items[i], prb_mcp_text_argument(call, "thread")))
            continue;
        if ((json_int_t)json_array_size(groups) == limit) {
            prb_mcp_put(call, "truncated", json_true());
            break;
        }
        json_array_append_new(groups, group_json(taken, &grouped->items[i], since));
    }
    prb_mcp_put(call, "gil", gil_json(held, taken, options.native));
    return true;
}

const struct prb_mcp_tool prb_mcp_stacks = {
    .name = "stacks",
    .title = "Stacks of all threads",
    .description = "Where each thread is now: groups of threads with the same stack, the largest "
                   "first, frames "
                   "innermost first, and who holds the GIL. Nothing is stopped but, with native, "
                   "single threads for "
                   "0.1 ms.",
    .input =
        "{\"type\":\"object\",\"properties\":{" PRB_MCP_TARGET
        ",\"native\":{\"type\":\"boolean\",\"description\":\"C and C++ frames, too\"},"
        "\"thread\":{\"type\":\"string\",\"maxLength\":100,\"description\":\"only this one: its "
        "number or name\"},\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":200,"
        "\"description\":\"groups; 20 if not given\"}},\"required\":[\"target\"],"
        "\"additionalProperties\":false}",
    .output = "{\"type\":\"object\",\"properties\":{\"groups\":{\"type\":\"array\",\"items\":{"
              "\"type\":\"object\"}},\"gil\":{\"type\":[\"string\",\"null\"]},\"truncated\":{"
              "\"type\":\"boolean\"}},\"required\":[\"groups\",\"gil\"]}",
    .call = stacks,
};
