/* What kinds without at_host do with a host's reply: answers.h. */
#include "fleet/kind/answers.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static bool corrupt(const struct prb_fleet_reply *reply, struct prb_error *err)
{
    return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", reply->host);
}

bool prb_ranks_answered(const struct prb_fleet_reply *reply, struct prb_rank_set *out,
                        struct prb_error *err)
{
    for (size_t i = 0; i < reply->state_count; i++)
        if (reply->states[i].state == PRB_COVERAGE_ANSWERED &&
            !prb_rank_set_add(out, reply->states[i].rank, reply->states[i].rank))
            return prb_nomem(err);
    return true;
}

/* Whether there is exactly one part for each rank that answered. */
static bool is_complete(const struct prb_fleet_reply *reply, struct prb_error *err)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set expected = {0}, got = {0};
    if (!prb_ranks_answered(reply, &expected, err))
        return false;
    for (size_t i = 0; i < reply->part_count; i++) {
        int rank = reply->parts[i].rank;
        if (!prb_rank_set_has(&expected, rank) || prb_rank_set_has(&got, rank))
            return corrupt(reply, err);
        if (!prb_rank_set_add(&got, rank, rank))
            return prb_nomem(err);
    }
    return prb_rank_set_size(&got) == prb_rank_set_size(&expected) ||
           prb_fail(err, PRB_CORRUPT, "the reply of %s lacks ranks", reply->host);
}

bool prb_answers_of_host(struct prb_answers *answers, const struct prb_fleet_reply *reply,
                         struct prb_error *err)
{
    size_t before = answers->count;
    bool good = is_complete(reply, err);
    for (size_t i = 0; good && i < reply->part_count; i++) {
        const struct prb_fleet_part *part = &reply->parts[i];
        good = prb_answers_add(answers, part->rank, reply->host, part->data, part->len, err);
    }
    while (!good && answers->count > before)
        free(answers->items[--answers->count].data);
    return good;
}

static bool add_object(struct prb_rank_objects *objects, const struct prb_fleet_reply *reply,
                       const struct prb_fleet_part *part, struct prb_error *err)
{
    PRB_AUTO(json_t) json_t *list = json_loadb(part->data, part->len, 0, NULL);
    bool good = json_is_array(list);
    for (size_t i = 0; good && i < json_array_size(list); i++)
        good = json_is_object(json_array_get(list, i));
    if (!good)
        return corrupt(reply, err);
    if (!PRB_GROW(objects->items, objects->count, objects->cap))
        return prb_nomem(err);
    struct prb_rank_object *one = &objects->items[objects->count++];
    *one = (struct prb_rank_object){.rank = part->rank, .list = json_incref(list)};
    snprintf(one->host, sizeof one->host, "%s", reply->host);
    return true;
}

bool prb_objects_of_host(struct prb_rank_objects *objects, const struct prb_fleet_reply *reply,
                         struct prb_error *err)
{
    size_t before = objects->count;
    bool good = is_complete(reply, err);
    for (size_t i = 0; good && i < reply->part_count; i++)
        good = add_object(objects, reply, &reply->parts[i], err);
    while (!good && objects->count > before)
        json_decref(objects->items[--objects->count].list);
    return good;
}

bool prb_text_part(struct prb_buf *out, const char *text, bool raised, struct prb_error *err)
{
    PRB_AUTO(json_t) json_t *object = json_pack("{s:b, s:s}", "raised", raised, "text", text);
    if (!object) /* what it printed is not UTF-8 */
        object = json_pack("{s:b, s:s}", "raised", raised, "text", "(not UTF-8)");
    PRB_AUTO_FREE char *dumped = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (!dumped)
        return prb_nomem(err);
    prb_buf_adds(out, dumped);
    return prb_buf_ok(out) || prb_nomem(err);
}

static bool add_text(struct prb_eval_answers *answers, int rank, const char *text, bool raised)
{
    for (size_t i = 0; i < answers->count; i++)
        if (answers->items[i].raised == raised && strcmp(answers->items[i].text, text) == 0)
            return prb_rank_set_add(&answers->items[i].ranks, rank, rank);
    struct prb_eval_answer one = {.text = strdup(text), .raised = raised};
    if (!one.text || !prb_rank_set_add(&one.ranks, rank, rank) ||
        !PRB_GROW(answers->items, answers->count, answers->cap)) {
        free(one.text);
        prb_rank_set_deinit(&one.ranks);
        return false;
    }
    answers->items[answers->count++] = one;
    return true;
}

/* First all parts are looked at, then all are added. */
bool prb_texts_of_host(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                       struct prb_error *err)
{
    (void)args;
    for (int dry = 1; dry >= 0; dry--) {
        for (size_t i = 0; i < reply->part_count; i++) {
            const struct prb_fleet_part *part = &reply->parts[i];
            PRB_AUTO(json_t) json_t *one = json_loadb(part->data, part->len, 0, NULL);
            const char *text = json_string_value(json_object_get(one, "text"));
            if (!text || part->rank < 0)
                return corrupt(reply, err);
            if (!dry &&
                !add_text(result, part->rank, text, json_is_true(json_object_get(one, "raised"))))
                return prb_nomem(err);
        }
    }
    return true;
}
