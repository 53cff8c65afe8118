/*
 * Makes calls of functions from the intervals of stacks.  The outermost functions that two
 * consecutive stacks of a thread share go on; the other calls end and begin.
 */
#include <string.h>

#include "profile/profile.h"

#define GAP 1e-9 /* s between two intervals that follow each other */

struct stack {
    struct prb_profile_call *calls; /* outermost first; end: when it was last seen */
    size_t count, cap;
};

struct making {
    const struct prb_profile *profile;
    struct stack *stacks; /* by thread */
    uint32_t *path;
    size_t path_count, path_cap;
    prb_profile_call_fn *each;
    void *context;
    bool on, failed;
};

static void end_from(struct making *v, struct stack *stack, size_t depth)
{
    while (stack->count > depth && v->on)
        v->on = v->each(v->context, &stack->calls[--stack->count]);
}

/* The nodes from the outermost to this one. */
static bool find_path(struct making *v, uint32_t node)
{
    v->path_count = 0;
    for (uint32_t at = node; at; at = v->profile->nodes[at].parent) {
        if (!PRB_GROW(v->path, v->path_count, v->path_cap))
            return false;
        v->path[v->path_count++] = at;
    }
    for (size_t i = 0; i < v->path_count / 2; i++) {
        uint32_t other = v->path[i];
        v->path[i] = v->path[v->path_count - 1 - i];
        v->path[v->path_count - 1 - i] = other;
    }
    return true;
}

static const struct prb_profile_frame *frame_at(const struct making *v, size_t depth)
{
    return &v->profile->frames[v->profile->nodes[v->path[depth]].frame];
}

static void begin_to(struct making *v, struct stack *stack,
                     const struct prb_profile_interval *interval)
{
    while (stack->count < v->path_count) {
        const struct prb_profile_frame *frame = frame_at(v, stack->count);
        if (!PRB_GROW(stack->calls, stack->count, stack->cap)) {
            v->failed = true;
            return;
        }
        stack->calls[stack->count] = (struct prb_profile_call){
            .thread = interval->thread,
            .function = frame->function,
            .line = frame->line,
            .depth = (uint32_t)stack->count,
            .start = interval->start,
        };
        stack->count++;
    }
}

static bool take_interval(void *context, const struct prb_profile_interval *interval)
{
    struct making *v = context;
    struct stack *stack = &v->stacks[interval->thread];
    size_t common = 0;
    if (!find_path(v, interval->node)) {
        v->failed = true;
        return false;
    }
    if (stack->count && interval->start <= stack->calls[0].end + GAP)
        while (common < stack->count && common < v->path_count &&
               stack->calls[common].function == frame_at(v, common)->function)
            common++;
    end_from(v, stack, common);
    begin_to(v, stack, interval);
    for (size_t i = 0; i < stack->count; i++) {
        struct prb_profile_call *call = &stack->calls[i];
        call->end = interval->end;
        call->samples += interval->samples;
        call->ns += interval->ns;
        if (i + 1 == stack->count) {
            call->self_samples += interval->samples;
            call->self_ns += interval->ns;
        }
    }
    return v->on && !v->failed;
}

bool prb_profile_each_call(const struct prb_profile *profile, prb_profile_call_fn *each,
                           void *context, struct prb_error *err)
{
    PRB_AUTO_FREE struct stack *stacks = calloc(profile->thread_count + 1, sizeof *stacks);
    if (!stacks)
        return prb_nomem(err);
    struct making v = {
        .profile = profile, .stacks = stacks, .each = each, .context = context, .on = true};
    bool ok = prb_profile_each_interval(profile, take_interval, &v, err);
    for (size_t i = 0; i < profile->thread_count; i++) {
        if (ok && !v.failed)
            end_from(&v, &stacks[i], 0);
        free(stacks[i].calls);
    }
    free(v.path);
    return ok && (!v.failed || prb_nomem(err));
}
