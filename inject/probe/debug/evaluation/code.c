/*
 * What is wanted of code objects: planted lines, steps, and what was reported as new.  It hangs at the
 * code object itself (its extra of PEP 523), so that it goes with it and is never found by an
 * address that another object has by now.
 */
#include <stdlib.h>

#include "inject/probe/debug/evaluation/evaluation.h"

static void *being_dropped; /* NULL: released, or none */

void prb_evaluation_release_code(void *extra)
{
    struct prb_evaluation_code *known = extra;
    if (!known)
        return;
    if (being_dropped == known)
        being_dropped = NULL;
    if (known->count || known->step)
        prb_evaluation.wanting--;
    const struct prb_py **plain = prb_evaluation_plain(known->code);
    if (*plain == known->code)
        *plain = NULL;
    *known->link = known->next;
    if (known->next)
        known->next->link = known->link;
    free(known->lines);
    free(known);
}

static struct prb_evaluation_code *make(struct prb_py *code)
{
    struct prb_evaluation_code *known = prb_evaluation_code(code);
    if (known)
        return known;
    known = calloc(1, sizeof *known);
    if (!known)
        return NULL;
    if (prb_evaluation.set_extra(code, prb_evaluation.extra, known) < 0) {
        prb_evaluation.py->PyErr_Clear();
        free(known);
        return NULL;
    }
    known->code = code;
    known->next = prb_evaluation.codes;
    known->link = &prb_evaluation.codes;
    if (known->next)
        known->next->link = &known->next;
    prb_evaluation.codes = known;
    return known;
}

static void count_wanting(bool before, bool now)
{
    prb_evaluation.wanting += (unsigned)now - (unsigned)before;
}

static int by_number(const void *a, const void *b)
{
    int first = *(const int *)a, second = *(const int *)b;
    return (first > second) - (first < second);
}

bool prb_evaluation_plant(struct prb_py *code, const int *lines, size_t count)
{
    struct prb_evaluation_code *known = count ? make(code) : prb_evaluation_code(code);
    if (!known)
        return !count;
    int *copy = NULL;
    if (count) {
        copy = calloc(count, sizeof *copy);
        if (!copy)
            return false;
        memcpy(copy, lines, count * sizeof *copy);
        qsort(copy, count, sizeof *copy, by_number);
    }
    bool before = known->count || known->step;
    free(known->lines);
    known->lines = copy;
    known->count = count;
    count_wanting(before, known->count || known->step);
    return true;
}

bool prb_evaluation_step(struct prb_py *code, unsigned events)
{
    struct prb_evaluation_code *known = events ? make(code) : prb_evaluation_code(code);
    if (!known)
        return !events;
    bool before = known->count || known->step;
    known->step = events;
    count_wanting(before, known->count || known->step);
    return true;
}

void prb_evaluation_reported(struct prb_py *code)
{
    struct prb_evaluation_code *known = make(code);
    if (known)
        known->reported = prb_evaluation.new_code;
}

bool prb_evaluation_planted(const struct prb_evaluation_code *known, int line)
{
    if (!known || !known->count || line < known->lines[0] || line > known->lines[known->count - 1])
        return false;
    return bsearch(&line, known->lines, known->count, sizeof line, by_number);
}

void prb_evaluation_drop_codes(void)
{
    struct prb_evaluation_code *known;
    while ((known = prb_evaluation.codes)) {
        being_dropped = known;
        /* Only some releases call the freefunc for what is replaced. */
        if (prb_evaluation.set_extra(known->code, prb_evaluation.extra, NULL) < 0)
            prb_evaluation.py->PyErr_Clear();
        if (being_dropped)
            prb_evaluation_release_code(known);
    }
}

void prb_evaluation_forget_codes(void)
{
    for (struct prb_evaluation_code *known = prb_evaluation.codes; known; known = known->next) {
        known->count = 0;
        known->step = known->reported = 0;
    }
    prb_evaluation.wanting = 0;
}
