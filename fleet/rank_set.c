/* See rank_set.h. */
#include "fleet/rank_set.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"

void prb_rank_set_deinit(struct prb_rank_set *set)
{
    free(set->ranges);
    *set = (struct prb_rank_set){0};
}

/* The first range that ends at rank or behind it. */
static size_t place_of(const struct prb_rank_set *set, int rank)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->ranges[middle].last < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert(struct prb_rank_set *set, size_t at, struct prb_rank_range range)
{
    if (!PRB_GROW(set->ranges, set->count, set->cap))
        return false;
    memmove(set->ranges + at + 1, set->ranges + at, (set->count - at) * sizeof *set->ranges);
    set->ranges[at] = range;
    set->count++;
    return true;
}

bool prb_rank_set_add(struct prb_rank_set *set, int first, int last)
{
    if (first < 0 || first > last || last >= PRB_RANKS_MAX)
        return false;
    size_t at = place_of(set, first - 1); /* one that touches it counts, too */
    if (at == set->count || set->ranges[at].first > last + 1)
        return insert(set, at, (struct prb_rank_range){first, last});
    struct prb_rank_range *range = &set->ranges[at];
    if (first < range->first)
        range->first = first;
    if (last <= range->last)
        return true;
    size_t end = at + 1;
    while (end < set->count && set->ranges[end].first <= last + 1)
        end++;
    range->last = set->ranges[end - 1].last > last ? set->ranges[end - 1].last : last;
    memmove(range + 1, set->ranges + end, (set->count - end) * sizeof *set->ranges);
    set->count -= end - at - 1;
    return true;
}

bool prb_rank_set_unite(struct prb_rank_set *set, const struct prb_rank_set *other)
{
    for (size_t i = 0; i < other->count; i++)
        if (!prb_rank_set_add(set, other->ranges[i].first, other->ranges[i].last))
            return false;
    return true;
}

bool prb_rank_set_has(const struct prb_rank_set *set, int rank)
{
    size_t at = place_of(set, rank);
    return at < set->count && set->ranges[at].first <= rank;
}

unsigned prb_rank_set_size(const struct prb_rank_set *set)
{
    unsigned size = 0;
    for (size_t i = 0; i < set->count; i++)
        size += (unsigned)(set->ranges[i].last - set->ranges[i].first) + 1;
    return size;
}

int prb_rank_set_next(const struct prb_rank_set *set, int after)
{
    size_t at = place_of(set, after + 1);
    if (at == set->count)
        return -1;
    return set->ranges[at].first > after ? set->ranges[at].first : after + 1;
}

char *prb_rank_set_text(const struct prb_rank_set *set)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (size_t i = 0; i < set->count; i++) {
        prb_buf_addf(&text, i ? ",%d" : "%d", set->ranges[i].first);
        if (set->ranges[i].last > set->ranges[i].first)
            prb_buf_addf(&text, "-%d", set->ranges[i].last);
    }
    prb_buf_adds(&text, "");
    return prb_buf_steal(&text);
}

static bool number(const char **at, int *out)
{
    long value = 0;
    if (!isdigit((unsigned char)**at))
        return false;
    for (; isdigit((unsigned char)**at); (*at)++)
        if ((value = value * 10 + (**at - '0')) >= PRB_RANKS_MAX)
            return false;
    *out = (int)value;
    return true;
}

bool prb_rank_set_parse(const char *text, struct prb_rank_set *set, struct prb_error *err)
{
    for (const char *at = text; *at;) {
        int first, last;
        bool ok = number(&at, &first);
        last = first;
        if (ok && *at == '-') {
            at++;
            ok = number(&at, &last) && last >= first;
        }
        if (!ok || (*at && *at != ',') || (*at && !at[1]))
            return prb_fail(err, PRB_USAGE, "\"%.80s\" is not a list of ranks, as 0-7,12", text);
        if (!prb_rank_set_add(set, first, last))
            return prb_nomem(err);
        at += *at == ',';
        while (*at == ' ')
            at++;
    }
    return true;
}
