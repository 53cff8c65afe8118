/* Two lists of the same events: see alignment.h. */
#include "table/shared/alignment.h"

#include <math.h>
#include <stdlib.h>

#define LAST 512     /* events that are compared: the newest */
#define CHOICES 16   /* shifts that are compared */
#define FEW 8        /* fewer events than this prove little: */
#define FEW_S 0.002  /* they have to lie closer than this */
#define MANY_S 0.25  /* the same of many */
#define FARTHEST_S 1 /* what counts of an event that is further away */

struct choice {
    int64_t shift;
    size_t votes;
};

/* The first that is not before a time. */
static size_t place_of(const double *times, size_t count, double time)
{
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (times[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int by_votes(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    return x->votes != y->votes ? (x->votes < y->votes) - (x->votes > y->votes)
                                : (x->shift > y->shift) - (x->shift < y->shift);
}

/* How often each shift puts an event beside its neighbour before or after it, most often first. */
static size_t vote(const struct prb_numbered *events, size_t count, const double *times,
                   size_t times_count, struct choice *out)
{
    int64_t all[2 * LAST];
    size_t voted = 0, choices = 0;
    for (size_t i = 0; i < count; i++) {
        size_t after = place_of(times, times_count, events[i].time);
        if (after)
            all[voted++] = (int64_t)after - 1 - events[i].number;
        if (after < times_count)
            all[voted++] = (int64_t)after - events[i].number;
    }
    qsort(all, voted, sizeof *all, by_number);
    for (size_t i = 0, end; i < voted; i = end) {
        for (end = i; end < voted && all[end] == all[i]; end++)
            continue;
        out[choices++] = (struct choice){all[i], end - i};
    }
    qsort(out, choices, sizeof *out, by_votes);
    return choices < CHOICES ? choices : CHOICES;
}

/* s from event to time, on average; NAN: too few of them have one. */
static double distance(const struct prb_numbered *events, size_t count, const double *times,
                       size_t times_count, int64_t shift)
{
    double sum = 0;
    size_t both = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t place = events[i].number + shift;
        if (place < 0 || place >= (int64_t)times_count)
            continue;
        double one = fabs(times[place] - events[i].time);
        sum += one < FARTHEST_S ? one : FARTHEST_S;
        both++;
    }
    return both && 2 * both >= count ? sum / (double)both : NAN;
}

bool prb_align(const struct prb_numbered *events, size_t count, const double *times,
               size_t times_count, int64_t *shift_out)
{
    struct choice choices[2 * LAST];
    /* What lies before or behind the other list says nothing. */
    while (times_count && count && events[count - 1].time > times[times_count - 1] + MANY_S)
        count--;
    size_t first = count > LAST ? count - LAST : 0;
    while (times_count && first < count && events[first].time < times[0] - MANY_S)
        first++;
    events += first;
    count -= first;
    double best = count < FEW ? FEW_S : MANY_S;
    bool found = false;
    size_t tried = vote(events, count, times, times_count, choices);
    for (size_t i = 0; i < tried; i++) {
        double one = distance(events, count, times, times_count, choices[i].shift);
        if (one >= best || isnan(one))
            continue;
        best = one;
        found = true;
        *shift_out = choices[i].shift;
    }
    return found;
}
