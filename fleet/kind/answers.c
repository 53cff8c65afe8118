/* What the kinds "schema" and "rows" do with a host's reply: answers.h. */
#include "fleet/kind/answers.h"

#include "base/error.h"

static bool has_answer(const struct prb_answers *answers, size_t from, int rank)
{
    for (size_t i = from; i < answers->count; i++)
        if (answers->items[i].rank == rank)
            return true;
    return false;
}

bool prb_answers_of_host(struct prb_answers *answers, const struct prb_fleet_reply *reply,
                         struct prb_error *err)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set expected = {0};
    size_t before = answers->count;
    bool good = true;
    for (size_t i = 0; i < reply->state_count; i++)
        if (reply->states[i].state == PRB_COVERAGE_ANSWERED &&
            !prb_rank_set_add(&expected, reply->states[i].rank, reply->states[i].rank))
            return prb_nomem(err);
    for (size_t i = 0; good && i < reply->part_count; i++) {
        const struct prb_fleet_part *part = &reply->parts[i];
        bool meant =
            prb_rank_set_has(&expected, part->rank) && !has_answer(answers, before, part->rank);
        good = meant ? prb_answers_add(answers, part->rank, reply->host, part->data, part->len, err)
                     : prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", reply->host);
    }
    if (good && answers->count - before != prb_rank_set_size(&expected))
        good = prb_fail(err, PRB_CORRUPT, "the reply of %s lacks ranks", reply->host);
    while (!good && answers->count > before)
        free(answers->items[--answers->count].data);
    return good;
}
