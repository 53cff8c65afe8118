/*
 * Samples of each rank for some seconds, as one profile.  args: seconds; rate; mode (its number);
 * native, async, subprocesses; states (threads without a weight, too).  result: struct
 * prb_fleet_profile.
 */
#include "fleet/profile.h"

#include "fleet/kind/answers.h"
#include "fleet/message/kind.h"
#include "profile/packed.h"

#define SECONDS 5.0
#define SECONDS_MOST 3600.0
#define RATE_MOST 1e4

PRB_DEFINE_AUTO_PTR(prb_profiler, struct prb_profiler, prb_profiler_free)

static bool has(const json_t *args, const char *key)
{
    return json_is_true(json_object_get(args, key));
}

static double number_of(const json_t *args, const char *key, double most, double without)
{
    double value = json_number_value(json_object_get(args, key));
    return value > 0 ? (value < most ? value : most) : without;
}

/* Every process that a rank's child samples is that rank's. */
static void name_rank(struct prb_profile *profile, int rank)
{
    struct prb_profile_box *box = (struct prb_profile_box *)profile;
    for (size_t i = 0; i < profile->process_count; i++)
        box->processes[i].rank = rank;
}

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    json_int_t mode = json_integer_value(json_object_get(args, "mode"));
    const struct prb_profiler_options options = {
        .mode = mode >= 0 && mode <= PRB_PROFILE_EXCEPTION ? (enum prb_profile_mode)mode
                                                           : PRB_PROFILE_ACTIVE,
        .rate = number_of(args, "rate", RATE_MOST, 0),
        .native = has(args, "native"),
        .async = has(args, "async"),
        .subprocesses = has(args, "subprocesses"),
        .states = has(args, "states"),
    };
    double seconds = number_of(args, "seconds", SECONDS_MOST, SECONDS);
    PRB_AUTO(prb_profiler) struct prb_profiler *profiler = prb_profiler_new(&options, err);
    if (!profiler || !prb_profiler_add(profiler, seat->member.pid, err) ||
        !prb_profiler_run(profiler, seconds, -1, NULL, NULL, err))
        return false;
    PRB_AUTO(prb_profile) struct prb_profile *profile = prb_profiler_finish(profiler);
    name_rank(profile, seat->member.rank);
    return prb_profile_pack(profile, options.states, out, err);
}

/* Whether nothing in it is of a rank that did not send it. */
static bool is_of(const struct prb_profile *profile, const struct prb_rank_set *ranks)
{
    for (size_t i = 0; i < profile->process_count; i++)
        if (!prb_rank_set_has(ranks, profile->processes[i].rank))
            return false;
    return true;
}

static struct prb_profile *unpack(const struct prb_fleet_part *part,
                                  const struct prb_rank_set *ranks, struct prb_error *err)
{
    PRB_AUTO(prb_profile)
    struct prb_profile *profile = prb_profile_unpack(part->data, part->len, err);
    if (profile && !is_of(profile, ranks))
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "the profile is of other ranks"));
    return PRB_STEAL(profile);
}

static bool at_host(const json_t *args, const struct prb_fleet_part *parts, size_t count,
                    struct prb_buf *out, int *faulty_out, struct prb_error *err)
{
    struct prb_profile_box *box = prb_profile_new(err);
    PRB_AUTO(prb_profile) struct prb_profile *all = box ? &box->profile : NULL;
    for (size_t i = 0; box && i < count; i++) {
        PRB_AUTO(prb_rank_set) struct prb_rank_set own = {0};
        if (!prb_rank_set_add(&own, parts[i].rank, parts[i].rank))
            return prb_nomem(err);
        PRB_AUTO(prb_profile) struct prb_profile *profile = unpack(&parts[i], &own, err);
        if (!profile) {
            *faulty_out = parts[i].rank;
            return false;
        }
        if (!prb_profile_add(box, profile, 0, err))
            return false;
    }
    return box && prb_profile_pack(all, has(args, "states"), out, err);
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    struct prb_fleet_profile *all = result;
    PRB_AUTO(prb_rank_set) struct prb_rank_set answered = {0};
    (void)args;
    if (!prb_ranks_answered(reply, &answered, err))
        return false;
    if (reply->part_count != 1)
        return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", reply->host);
    PRB_AUTO(prb_profile) struct prb_profile *one = unpack(&reply->parts[0], &answered, err);
    if (!one)
        return false;
    if (!all->profile) {
        struct prb_profile_box *box = prb_profile_new(err);
        if (!box)
            return false;
        all->profile = &box->profile;
    }
    return prb_profile_add((struct prb_profile_box *)all->profile, one, all->from, err);
}

void prb_fleet_profile_deinit(struct prb_fleet_profile *profile)
{
    prb_profile_free(profile->profile);
    *profile = (struct prb_fleet_profile){0};
}

const struct prb_fleet_kind prb_fleet_kind_profile = {
    .name = "profile",
    .budget = 15,
    .large = true,
    .pace = PRB_FLEET_LONG,
    .of_rank = of_rank,
    .at_host = at_host,
    .at_root = at_root,
};
