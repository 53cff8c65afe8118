/* Stacks of all threads, merged.  args: native, locals, all_interpreters, secrets, by_function,
 * thread (a name), repr (characters of a value).  result: struct prb_merged. */
#include <string.h>

#include "fleet/kind/merging.h"

PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)

static bool has(const json_t *args, const char *key)
{
    return json_is_true(json_object_get(args, key));
}

static bool is_wanted(const struct prb_stacks *stacks, const struct prb_thread *thread,
                      const char *name)
{
    bool main = thread->os_thread_id == stacks->target.pid;
    return !name || (thread->name && strcmp(thread->name, name) == 0) ||
           (main && strcmp(name, "MainThread") == 0);
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    const char *thread = json_string_value(json_object_get(args, "thread"));
    const json_t *repr = json_object_get(args, "repr");
    struct prb_stack_options options = {
        .native = has(args, "native"),
        .locals = has(args, "locals"),
        .all_interpreters = has(args, "all_interpreters"),
        .hide_secrets = !has(args, "secrets"),
        .repr_limit = json_integer_value(repr) > 0 ? (size_t)json_integer_value(repr) : 0,
    };
    struct prb_target *target = prb_fleet_seat_target(seat, err);
    PRB_AUTO(prb_stacks)
    struct prb_stacks *stacks = target ? prb_stacks_take(target, &options, err) : NULL;
    PRB_AUTO(prb_merged) struct prb_merged *merged = stacks ? prb_merged_by(args, err) : NULL;
    if (!merged)
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (is_wanted(stacks, &stacks->threads[i], thread))
            stacks->threads[kept++] = stacks->threads[i];
    stacks->thread_count = kept;
    return prb_merged_add(merged, seat->member.rank, stacks, err) &&
           prb_merged_put(merged, out, err);
}

const struct prb_fleet_kind prb_fleet_kind_stacks = {
    .name = "stacks",
    .budget = 2,
    .large = true,
    .of_rank = of_rank,
    .at_host = prb_merged_at_host,
    .at_root = prb_merged_at_root,
};
