/* See wavefront.h. */
#include "fleet/hang/wavefront.h"

#include <string.h>

#include "base/buf.h"

/* One rank in one group. */
struct place {
    const struct prb_hang_group *group;
    int rank;
};

const struct prb_hang_group *prb_wavefront_open(const struct prb_hang_rank *rank)
{
    const struct prb_hang_group *found = NULL;
    for (size_t i = 0; i < rank->group_count; i++) {
        const struct prb_hang_group *group = &rank->groups[i];
        if (group->open && (!found || (group->begun > 0 && group->begun < found->begun)))
            found = group;
    }
    return found;
}

static int by_name(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int order = strcmp(x->group->name, y->group->name);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* All places, groups side by side; a process that was looked at alone has no rank, and none. */
static struct place *places_of(const struct prb_hang *hang, size_t *count_out)
{
    size_t count = 0;
    for (size_t i = 0; i < hang->count; i++)
        count += hang->ranks[i].rank < 0 ? 0 : hang->ranks[i].group_count;
    struct place *places = calloc(count + 1, sizeof *places);
    *count_out = 0;
    for (size_t i = 0; places && i < hang->count; i++)
        for (size_t k = 0; hang->ranks[i].rank >= 0 && k < hang->ranks[i].group_count; k++)
            places[(*count_out)++] = (struct place){&hang->ranks[i].groups[k], hang->ranks[i].rank};
    if (places)
        qsort(places, *count_out, sizeof *places, by_name);
    return places;
}

static size_t end_of(const struct place *places, size_t count, size_t first)
{
    size_t end = first + 1;
    while (end < count && strcmp(places[end].group->name, places[first].group->name) == 0)
        end++;
    return end;
}

/* Of one group: who waits, and for whom. */
static bool add_edges(const struct place *places, size_t count, struct prb_rank_set *waiting,
                      struct prb_rank_set *awaited)
{
    int64_t front = -1;
    for (size_t i = 0; i < count; i++)
        if (places[i].group->open && places[i].group->sequence > front)
            front = places[i].group->sequence;
    for (size_t i = 0; front >= 0 && i < count; i++) {
        int rank = places[i].rank;
        if ((places[i].group->open && !prb_rank_set_add(waiting, rank, rank)) ||
            (places[i].group->sequence < front && !prb_rank_set_add(awaited, rank, rank)))
            return false;
    }
    return true;
}

bool prb_wavefront_roots(const struct prb_hang *hang, struct prb_rank_set *roots)
{
    size_t count, end;
    PRB_AUTO_FREE struct place *places = places_of(hang, &count);
    PRB_AUTO(prb_rank_set) struct prb_rank_set waiting = {0};
    PRB_AUTO(prb_rank_set) struct prb_rank_set awaited = {0};
    bool ok = places;
    for (size_t i = 0; ok && i < count; i = end) {
        end = end_of(places, count, i);
        ok = add_edges(places + i, end - i, &waiting, &awaited);
    }
    for (int rank = prb_rank_set_next(&awaited, -1); ok && rank >= 0;
         rank = prb_rank_set_next(&awaited, rank))
        if (!prb_rank_set_has(&waiting, rank))
            ok = prb_rank_set_add(roots, rank, rank);
    return ok;
}

static bool same_call(const struct prb_hang_group *a, const struct prb_hang_group *b)
{
    return strcmp(a->operation, b->operation) == 0 && strcmp(a->sizes, b->sizes) == 0;
}

/* How many of a group call the same at the same number. */
static size_t alike(const struct place *places, size_t count, const struct prb_hang_group *group)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += places[i].group->open && places[i].group->sequence == group->sequence &&
                 same_call(places[i].group, group);
    return found;
}

static size_t at_number(const struct place *places, size_t count, int64_t sequence)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += places[i].group->open && places[i].group->sequence == sequence;
    return found;
}

bool prb_wavefront_mismatch(const struct prb_hang *hang, struct prb_rank_set *odd)
{
    size_t count, end;
    PRB_AUTO_FREE struct place *places = places_of(hang, &count);
    bool ok = places;
    for (size_t i = 0; ok && i < count; i = end) {
        end = end_of(places, count, i);
        for (size_t k = i; ok && k < end; k++) {
            const struct prb_hang_group *group = places[k].group;
            size_t same = alike(places + i, end - i, group);
            if (group->open && 2 * same < at_number(places + i, end - i, group->sequence))
                ok = prb_rank_set_add(odd, places[k].rank, places[k].rank);
        }
    }
    return ok;
}
