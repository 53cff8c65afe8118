/* Stacks of all threads, merged.  args: native, locals, all_interpreters, secrets, by_function,
 * thread (a name), repr (characters of a value).  result: struct prb_merged. */
#include <string.h>

#include "base/error.h"
#include "fleet/merged.h"
#include "fleet/message/kind.h"

PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)

static bool has(const json_t *args, const char *key)
{
    return json_is_true(json_object_get(args, key));
}

static struct prb_merged *new_merged(const json_t *args, struct prb_error *err)
{
    struct prb_merged_options options = {.by_function = has(args, "by_function")};
    return prb_merged_new(&options, err);
}

static bool is_wanted(const struct prb_stacks *stacks, const struct prb_thread *thread,
                      const char *name)
{
    bool main = thread->os_thread_id == stacks->target.pid;
    return !name || (thread->name && strcmp(thread->name, name) == 0) ||
           (main && strcmp(name, "MainThread") == 0);
}

static bool pack(struct prb_merged *merged, struct prb_buf *out, struct prb_error *err)
{
    size_t len;
    PRB_AUTO_FREE char *text = prb_merged_pack(merged, &len, err);
    if (text)
        prb_buf_add(out, text, len);
    return text;
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
    PRB_AUTO(prb_merged) struct prb_merged *merged = stacks ? new_merged(args, err) : NULL;
    if (!merged)
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (is_wanted(stacks, &stacks->threads[i], thread))
            stacks->threads[kept++] = stacks->threads[i];
    stacks->thread_count = kept;
    return prb_merged_add(merged, seat->member.rank, stacks, err) && pack(merged, out, err);
}

static bool at_host(const json_t *args, const struct prb_fleet_part *parts, size_t count,
                    struct prb_buf *out, int *faulty_out, struct prb_error *err)
{
    PRB_AUTO(prb_merged) struct prb_merged *merged = new_merged(args, err);
    for (size_t i = 0; merged && i < count; i++) {
        PRB_AUTO(prb_rank_set) struct prb_rank_set own = {0};
        if (!prb_rank_set_add(&own, parts[i].rank, parts[i].rank))
            return prb_nomem(err);
        if (!prb_merged_add_packed(merged, parts[i].data, parts[i].len, &own, err)) {
            *faulty_out = parts[i].rank;
            return false;
        }
    }
    return merged && pack(merged, out, err);
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set answered = {0};
    (void)args;
    for (size_t i = 0; i < reply->state_count; i++)
        if (reply->states[i].state == PRB_COVERAGE_ANSWERED &&
            !prb_rank_set_add(&answered, reply->states[i].rank, reply->states[i].rank))
            return prb_nomem(err);
    if (reply->part_count != 1)
        return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", reply->host);
    return prb_merged_add_packed(result, reply->parts[0].data, reply->parts[0].len, &answered, err);
}

const struct prb_fleet_kind prb_fleet_kind_stacks = {
    .name = "stacks",
    .budget = 2,
    .large = true,
    .of_rank = of_rank,
    .at_host = at_host,
    .at_root = at_root,
};
