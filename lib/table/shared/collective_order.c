/* Parts that stand beside a wrong one: see collective_order.h. */
#include "table/shared/collective_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_S 10.0 /* for which one difference of two clocks serves */
#define LEAST 8      /* pairs that say what is usual */
#define MOST 0.8     /* of them agree, else nothing is known */
#define NEIGHBOURS 4 /* on each side among which a part is looked for */
#define WINDOW (2 * NEIGHBOURS + 1)

/* Of one collective: the part of the lowest rank, and that of another one. */
struct pair {
    struct prb_collective *first, *other;
};

struct edge {
    double at;
    int step; /* 1: a range begins; -1: one ends */
};

/* What the other's clock may show beyond the first's. */
static double least_of(const struct pair *pair) { return pair->other->begin - pair->first->end; }
static double most_of(const struct pair *pair) { return pair->other->end - pair->first->begin; }

static bool holds(const struct pair *pair, double offset)
{
    return least_of(pair) <= offset && offset <= most_of(pair);
}

static int by_place(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : y->step - x->step;
}

/* The difference that most pairs allow; 0, one clock, before all others.  False: they do not agree. */
static bool usual_offset(const struct pair *pairs, size_t count, struct edge *edges,
                         double *offset_out)
{
    size_t good = 0, open = 0, best = 0;
    double needed = MOST * (double)count;
    for (size_t i = 0; i < count; i++) {
        edges[2 * i] = (struct edge){least_of(&pairs[i]), 1};
        edges[2 * i + 1] = (struct edge){most_of(&pairs[i]), -1};
        good += holds(&pairs[i], 0);
    }
    *offset_out = 0;
    if ((double)good >= needed)
        return true;
    qsort(edges, 2 * count, sizeof *edges, by_place);
    for (size_t i = 0; i + 1 < 2 * count; i++) {
        open = edges[i].step > 0 ? open + 1 : open - 1;
        if (open <= best)
            continue;
        best = open;
        *offset_out = (edges[i].at + edges[i + 1].at) / 2;
    }
    return (double)best >= needed;
}

/* ---- putting in order ---- */

static int by_first_end(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return (x->first->end > y->first->end) - (x->first->end < y->first->end);
}

static int by_end(const void *a, const void *b)
{
    const struct prb_collective *x = a, *y = b;
    return (x->end > y->end) - (x->end < y->end);
}

/* What is the part's own; the rest says which collective it stands for. */
static void take_part(struct prb_collective *to, const struct prb_collective *from)
{
    to->begin = from->begin;
    to->end = from->end;
    to->number = from->number;
}

/* Pair these by the order of their ends.  False: that does not help, and nothing has changed. */
static bool pair_by_end(struct pair *pairs, size_t count, double offset)
{
    struct pair sorted[WINDOW];
    struct prb_collective before[WINDOW], parts[WINDOW];
    bool good = true;
    memcpy(sorted, pairs, count * sizeof *pairs);
    for (size_t i = 0; i < count; i++)
        before[i] = parts[i] = *pairs[i].other;
    qsort(sorted, count, sizeof *sorted, by_first_end);
    qsort(parts, count, sizeof *parts, by_end);
    for (size_t i = 0; i < count; i++) {
        take_part(sorted[i].other, &parts[i]);
        good = good && holds(&sorted[i], offset);
    }
    for (size_t i = 0; !good && i < count; i++)
        take_part(pairs[i].other, &before[i]);
    return good;
}

/* As few neighbours as do. */
static bool put_right(struct pair *pairs, size_t count, size_t at, double offset)
{
    for (size_t side = 1; side <= NEIGHBOURS; side++) {
        size_t begin = at > side ? at - side : 0,
               end = at + side + 1 < count ? at + side + 1 : count;
        if (pair_by_end(pairs + begin, end - begin, offset))
            return true;
    }
    return false;
}

static void settle(struct pair *pairs, size_t count, struct edge *edges, size_t *taken_out)
{
    double offset;
    if (count < LEAST || !usual_offset(pairs, count, edges, &offset))
        return;
    for (size_t i = 0; i < count; i++)
        if (!holds(&pairs[i], offset))
            put_right(pairs, count, i, offset);
    for (size_t i = 0; i < count; i++)
        if (!holds(&pairs[i], offset)) {
            pairs[i].other->seq = -1;
            ++*taken_out;
        }
}

/* ---- all ---- */

static bool is_same_kind(const struct prb_collective *a, const struct prb_collective *b)
{
    return strcmp(a->group, b->group) == 0 && strcmp(a->op, b->op) == 0;
}

/* Where the next kind begins, or the next piece of time. */
static size_t end_of_piece(const struct prb_job *job, size_t first)
{
    const struct prb_collective *one = &job->items[first];
    size_t end = first;
    while (end < job->count && is_same_kind(one, &job->items[end]) &&
           fabs(job->items[end].begin - one->begin) <= PIECE_S)
        end += prb_job_parts(job, end);
    return end > first ? end : first + 1;
}

/* Parts of two ranks in the collectives of a piece; those with twice the same rank are left out. */
static size_t pairs_of(struct prb_job *job, size_t begin, size_t end, size_t rank, struct pair *out)
{
    size_t count = 0;
    for (size_t i = begin, parts; i < end; i += parts) {
        struct prb_collective *first = &job->items[i], *other = NULL;
        parts = prb_job_parts(job, i);
        bool twice = false;
        for (size_t k = 1; k < parts; k++) {
            twice |= first[k].rank == first[k - 1].rank;
            other = first[k].rank == rank ? &first[k] : other;
        }
        if (other && !twice && isfinite(first->end) && isfinite(other->end))
            out[count++] = (struct pair){first, other};
    }
    return count;
}

bool prb_job_put_in_order(struct prb_job *job, size_t *taken_out, struct prb_error *err)
{
    PRB_AUTO_FREE struct pair *pairs = calloc(job->count + 1, sizeof *pairs);
    PRB_AUTO_FREE struct edge *edges = calloc(2 * job->count + 1, sizeof *edges);
    size_t kept = 0;
    *taken_out = 0;
    if (!pairs || !edges)
        return prb_nomem(err);
    for (size_t i = 0, end; i < job->count; i = end) {
        end = end_of_piece(job, i);
        for (size_t rank = 1; job->items[i].waits && rank < job->rank_count; rank++)
            settle(pairs, pairs_of(job, i, end, rank, pairs), edges, taken_out);
    }
    for (size_t i = 0; i < job->count; i++)
        if (job->items[i].seq != -1)
            job->items[kept++] = job->items[i];
    job->count = kept;
    return true;
}
