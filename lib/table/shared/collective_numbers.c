/* Numbers beyond the Flight Recorder: see collective_numbers.h. */
#include "table/shared/collective_numbers.h"

#include <stdlib.h>
#include <string.h>

#define MIXED_UP 8 /* by so many the observer's numbers may come in another order than the times */
#define BEYOND (INT64_MIN / 2)

/* What one rank has of an operation, by time: some known, by the recorder, and what it says of the
 * others. */
struct run {
    struct prb_collective **items;
    size_t count;
    size_t first;      /* of those that were counted together with the newest known one */
    size_t last_known; /* count: none */
    const char *group; /* of all that are known; NULL: of several, or none is known */
    int64_t shift;     /* what its numbers are more than those of the rank compared with */
    bool usable;
};

static int by_operation(const void *a, const void *b)
{
    const struct prb_collective *x = *(struct prb_collective *const *)a;
    const struct prb_collective *y = *(struct prb_collective *const *)b;
    int ops = strcmp(x->op, y->op), backends = strcmp(x->backend, y->backend);
    if (ops || backends)
        return ops ? ops : backends;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static bool is_same_operation(const struct prb_collective *a, const struct prb_collective *b)
{
    return strcmp(a->op, b->op) == 0 && strcmp(a->backend, b->backend) == 0;
}

static bool is_known(const struct prb_collective *one) { return one->group && one->seq >= 0; }

/* Recording that began anew counts from 0: what was before that is another count. */
static void look_at(struct run *run)
{
    int64_t most = -1;
    run->last_known = run->count;
    for (size_t i = 0; i < run->count; i++) {
        const struct prb_collective *one = run->items[i];
        if (one->number + MIXED_UP < most) {
            run->first = i;
            run->last_known = run->count;
            run->group = NULL;
            most = -1;
        }
        most = one->number > most ? one->number : most;
        if (!is_known(one))
            continue;
        bool first = run->last_known == run->count;
        run->group =
            first || (run->group && strcmp(run->group, one->group) == 0) ? one->group : NULL;
        run->last_known = i;
    }
    run->usable = run->group != NULL;
}

/* By the newest that both know; another one that both know must say the same. */
static bool compare(const struct run *run, const struct run *with, int64_t *shift_out)
{
    size_t i = run->last_known + 1, j = with->last_known + 1;
    bool found = false;
    while (i > run->first && j > with->first) {
        const struct prb_collective *mine = run->items[i - 1], *theirs = with->items[j - 1];
        if (!is_known(mine) || (is_known(theirs) && mine->seq > theirs->seq)) {
            i--;
        } else if (!is_known(theirs) || theirs->seq > mine->seq) {
            j--;
        } else {
            int64_t shift = mine->number - theirs->number;
            if (found && shift != *shift_out)
                return false;
            *shift_out = shift;
            found = true;
            i--, j--;
        }
    }
    return found;
}

static void give(const struct run *run)
{
    for (size_t i = run->first; i < run->count; i++) {
        struct prb_collective *one = run->items[i];
        if (is_known(one))
            continue;
        one->group = run->group;
        one->seq = BEYOND + one->number - run->shift;
    }
}

/* All of one operation, by rank. */
static void number(struct run *runs, size_t count)
{
    const struct run *with = NULL;
    size_t usable = 0;
    for (size_t i = 0; i < count; i++) {
        struct run *run = &runs[i];
        look_at(run);
        if (!run->usable)
            continue;
        run->usable =
            !with || (strcmp(run->group, with->group) == 0 && compare(run, with, &run->shift));
        with = with ? with : run;
        usable += run->usable;
    }
    for (size_t i = 0; usable > 1 && i < count; i++)
        if (runs[i].usable)
            give(&runs[i]);
}

bool prb_job_number(struct prb_job *job, struct prb_error *err)
{
    PRB_AUTO_FREE struct prb_collective **items = calloc(job->count + 1, sizeof *items);
    PRB_AUTO_FREE struct run *runs = calloc(job->rank_count + 1, sizeof *runs);
    size_t count = 0;
    if (!items || !runs)
        return prb_nomem(err);
    for (size_t i = 0; i < job->count; i++)
        if (job->items[i].number >= 0)
            items[count++] = &job->items[i];
    qsort(items, count, sizeof *items, by_operation);
    for (size_t i = 0, run_count; i < count;) {
        size_t first = i;
        for (run_count = 0; i < count && is_same_operation(items[first], items[i]); run_count++) {
            struct run *run = &runs[run_count];
            *run = (struct run){.items = &items[i]};
            size_t rank = items[i]->rank;
            for (; i < count && items[i]->rank == rank && is_same_operation(items[first], items[i]);
                 i++)
                run->count++;
        }
        number(runs, run_count);
    }
    return true;
}
