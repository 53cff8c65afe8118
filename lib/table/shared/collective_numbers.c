/* Numbers beyond the Flight Recorder: see collective_numbers.h. */
#include "table/shared/collective_numbers.h"

#include <stdlib.h>
#include <string.h>

#define MIXED_UP 8 /* by so many the observer's numbers may come in another order than the times */
#define BEYOND (INT64_MIN / 2)
/* By time: */
#define PAIRS_LEAST 4   /* collectives that two ranks have */
#define FITS_LEAST 0.9  /* of them overlap: those that are mixed up do not */
#define APART_LEAST 0.1 /* the next best is worse by so much */
#define LOOKED_AT 32u   /* for shifts to try */
#define TRIED_MAX 64u

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

/* ---- by time ---- */

static int by_number(const void *a, const void *b)
{
    const struct prb_collective *x = *(struct prb_collective *const *)a;
    const struct prb_collective *y = *(struct prb_collective *const *)b;
    return (x->number > y->number) - (x->number < y->number);
}

static bool overlap(const struct prb_collective *a, const struct prb_collective *b)
{
    return a->end >= b->begin && b->end >= a->begin; /* false where an end is not known */
}

/* What part of those that both have overlaps if mine have so much higher numbers. */
static double fits(const struct run *run, const struct run *with, int64_t shift)
{
    size_t pairs = 0, good = 0;
    for (size_t i = run->first, j = with->first; i < run->count && j < with->count;) {
        const struct prb_collective *mine = run->items[i], *theirs = with->items[j];
        int64_t number = mine->number - shift;
        if (number == theirs->number) {
            pairs++;
            good += overlap(mine, theirs);
        }
        i += number <= theirs->number;
        j += theirs->number <= number;
    }
    return pairs < PAIRS_LEAST ? 0 : (double)good / (double)pairs;
}

static bool shift_by_time(const struct run *run, const struct run *with, int64_t *shift_out)
{
    double best = 0, second = 0;
    int64_t tried[TRIED_MAX];
    size_t count = 0, step = (run->count - run->first) / LOOKED_AT + 1;
    for (size_t i = run->first; i < run->count; i += step)
        for (size_t j = with->first; j < with->count && count < TRIED_MAX; j++) {
            int64_t shift = run->items[i]->number - with->items[j]->number;
            bool again = false;
            for (size_t k = 0; k < count; k++)
                again |= tried[k] == shift;
            if (again || !overlap(run->items[i], with->items[j]))
                continue;
            tried[count++] = shift;
            double now = fits(run, with, shift);
            second = now > best ? best : now > second ? now : second;
            *shift_out = now > best ? shift : *shift_out;
            best = now > best ? now : best;
        }
    return best >= FITS_LEAST && best - second >= APART_LEAST;
}

/* Two ranks have each collective together; which, says the time: the parts of one overlap, as nobody
 * ends before both have begun. */
static void number_by_time(struct run *runs)
{
    for (size_t i = 0; i < 2; i++) {
        look_at(&runs[i]);
        for (size_t k = runs[i].first; k < runs[i].count; k++)
            if (is_known(runs[i].items[k]) || !runs[i].items[k]->waits)
                return;
        runs[i].group = "";
        runs[i].shift = 0;
        qsort(runs[i].items + runs[i].first, runs[i].count - runs[i].first, sizeof *runs[i].items,
              by_number);
    }
    if (!shift_by_time(&runs[1], &runs[0], &runs[1].shift))
        return;
    give(&runs[0]);
    give(&runs[1]);
}

bool prb_job_number(struct prb_job *job, bool one_machine, struct prb_error *err)
{
    bool two = one_machine && job->rank_count == 2 && job->world_size == 2;
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
        if (two && run_count == 2)
            number_by_time(runs);
    }
    return true;
}
