/* Two views of each rank, for the question whether the job hangs.  args: every (s), views (2).
 * result: struct prb_hang, without a verdict (fleet/hang.h).
 *
 * A part is an object as evidence.h has it.  A host's part is {"frames": [stack, …], "ranks": {"3":
 * {… "frames": number}}}: ranks that stand at the same place share their stack. */
#include <string.h>

#include "base/error.h"
#include "fleet/hang/evidence.h"
#include "fleet/kind/hang.h"

#define EVERY 2.0 /* s */
#define VIEWS_MOST 100
#define STACKS_MOST 100000

bool prb_hang_of_rank(struct prb_fleet_seat *seat, const json_t *args, bool deep,
                      struct prb_buf *out, struct prb_error *err)
{
    const json_t *every = json_object_get(args, "every");
    json_int_t views = json_integer_value(json_object_get(args, "views"));
    const struct prb_evidence_options options = {
        .every = json_is_number(every) ? json_number_value(every) : EVERY,
        .views = views >= 2 && views <= VIEWS_MOST ? (int)views : 2,
        .budget = seat->budget,
        .deep = deep,
    };
    struct prb_target *target = prb_fleet_seat_target(seat, err);
    PRB_AUTO(json_t) json_t *object = target ? prb_evidence_take(target, &options, err) : NULL;
    PRB_AUTO_FREE char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (object && !text)
        return prb_nomem(err);
    if (text)
        prb_buf_adds(out, text);
    return text;
}

/* Whoever may look loads nothing: "deep" is a kind of its own. */
static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    return prb_hang_of_rank(seat, args, false, out, err);
}

/* ---- at the host ---- */

/* The number of a stack among those that are there; added when it is new. */
static json_int_t number_of(json_t *stacks, json_t *numbers, json_t *stack)
{
    PRB_AUTO_FREE char *key = json_dumps(stack, JSON_COMPACT);
    const json_t *known = key ? json_object_get(numbers, key) : NULL;
    if (known)
        return json_integer_value(known);
    json_int_t number = (json_int_t)json_array_size(stacks);
    if (!key || json_array_append(stacks, stack) != 0 ||
        json_object_set_new(numbers, key, json_integer(number)) != 0)
        return -1;
    return number;
}

static bool add_part(json_t *stacks, json_t *numbers, json_t *ranks,
                     const struct prb_fleet_part *part, struct prb_error *err)
{
    char key[16];
    PRB_AUTO(json_t) json_t *one = json_loadb(part->data, part->len, 0, NULL);
    json_t *stack = json_object_get(one, "frames");
    if (!json_is_array(stack))
        return prb_fail(err, PRB_CORRUPT, "what was seen of it cannot be parsed");
    json_int_t number = number_of(stacks, numbers, stack);
    snprintf(key, sizeof key, "%d", part->rank);
    return (number >= 0 && json_object_set_new(one, "frames", json_integer(number)) == 0 &&
            json_object_set(ranks, key, one) == 0) ||
           prb_nomem(err);
}

static bool at_host(const json_t *args, const struct prb_fleet_part *parts, size_t count,
                    struct prb_buf *out, int *faulty_out, struct prb_error *err)
{
    PRB_AUTO(json_t) json_t *stacks = json_array();
    PRB_AUTO(json_t) json_t *numbers = json_object();
    PRB_AUTO(json_t) json_t *ranks = json_object();
    (void)args;
    for (size_t i = 0; i < count; i++) {
        if (!add_part(stacks, numbers, ranks, &parts[i], err)) {
            *faulty_out = parts[i].rank;
            return false;
        }
    }
    PRB_AUTO(json_t) json_t *all = json_pack("{s:O, s:O}", "frames", stacks, "ranks", ranks);
    PRB_AUTO_FREE char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
    if (!text)
        return prb_nomem(err);
    prb_buf_adds(out, text);
    return true;
}

/* ---- at the asker ---- */

static bool add_rank(struct prb_hang *hang, json_t *stacks, json_t *one, const char *host,
                     const struct prb_fleet_state *state, struct prb_error *err)
{
    const json_t *number = json_object_get(one, "frames");
    json_t *stack = json_is_integer(number) && json_integer_value(number) >= 0
                        ? json_array_get(stacks, (size_t)json_integer_value(number))
                        : NULL;
    if (!stack || json_object_set(one, "frames", stack) != 0)
        return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", host);
    if (!PRB_GROW(hang->ranks, hang->count, hang->cap))
        return prb_nomem(err);
    struct prb_hang_rank *rank = &hang->ranks[hang->count];
    *rank = (struct prb_hang_rank){
        .rank = state->rank, .pid = state->pid, .host = host, .state = PRB_COVERAGE_ANSWERED};
    hang->count++;
    return prb_evidence_read(one, rank, err);
}

/* What a reply added is taken away again. */
static void take_back(struct prb_hang *hang, size_t count)
{
    while (hang->count > count) {
        free(hang->ranks[--hang->count].frames);
        free(hang->ranks[hang->count].groups);
    }
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    struct prb_hang *hang = result;
    const struct prb_fleet_part *part = reply->parts;
    size_t before = hang->count;
    char key[16];
    PRB_AUTO(json_t)
    json_t *all = reply->part_count == 1 ? json_loadb(part->data, part->len, 0, NULL) : NULL;
    json_t *stacks = json_object_get(all, "frames"), *ranks = json_object_get(all, "ranks");
    (void)args;
    if (!json_is_array(stacks) || !json_is_object(ranks) || json_array_size(stacks) > STACKS_MOST)
        return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", reply->host);
    json_object_set_new(all, "host", json_string(reply->host));
    const char *host = json_string_value(json_object_get(all, "host"));
    if (!hang->kept && !(hang->kept = json_array()))
        return prb_nomem(err);
    for (size_t i = 0; i < reply->state_count; i++) {
        const struct prb_fleet_state *state = &reply->states[i];
        if (state->state != PRB_COVERAGE_ANSWERED)
            continue;
        snprintf(key, sizeof key, "%d", state->rank);
        if (!add_rank(hang, stacks, json_object_get(ranks, key), host ? host : "?", state, err)) {
            take_back(hang, before);
            return false;
        }
    }
    return json_array_append(hang->kept, all) == 0 || prb_nomem(err);
}

const struct prb_fleet_kind prb_fleet_kind_hang = {
    .name = "hang",
    .budget = EVERY + 5,
    .pace = PRB_FLEET_LONG,
    .of_rank = of_rank,
    .at_host = at_host,
    .at_root = at_root,
};
