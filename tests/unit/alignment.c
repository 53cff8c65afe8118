/* Two lists of the same events, of which one began before and ends after the other. */
#include "table/shared/alignment.h"

#include <stdlib.h>

#include "unit.h"

#define EVENTS 3000

static uint64_t state;

/* From 0 to 1, the same in each run. */
static double chance(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

/* What lies between the two moments of an event: mostly 30 us, and on a busy machine up to `late`. */
static double between(double late) { return chance() < 0.5 ? 30e-6 : late * chance() * chance(); }

struct lists {
    struct prb_numbered events[EVENTS];
    double times[EVENTS];
};

/* Bursts of one to four, as of a step's gradients; sign -1: the second list's moment is the first. */
static void fill(struct lists *lists, double late, double sign)
{
    double now = 1.7e9;
    for (size_t i = 0, burst = 0; i < EVENTS; i++) {
        double gap = between(late);
        now += burst-- ? 80e-6 : 5e-3 + 20e-3 * chance();
        burst = burst > 4 ? (size_t)(chance() * 4) : burst;
        lists->times[i] = sign < 0 ? now : now + gap;
        lists->events[i] = (struct prb_numbered){(int64_t)i, sign < 0 ? now + gap : now};
        now += gap; /* the thread goes on when both have been */
    }
}

static void test_lists_that_overlap(void **test)
{
    (void)test;
    static struct lists lists;
    static const double late[] = {0, 2e-3, 30e-3};
    for (size_t i = 0; i < 60; i++) {
        size_t first = (size_t)(chance() * 1000), begun = (size_t)(chance() * 1000);
        size_t last = EVENTS - (size_t)(chance() * 300), ended = EVENTS - (size_t)(chance() * 300);
        int64_t shift = INT64_MIN;
        fill(&lists, late[i % 3], i % 2 ? -1 : 1);
        for (size_t k = begun; k < EVENTS; k++)
            lists.events[k].number = (int64_t)(k - begun);
        assert_true(prb_align(lists.events + begun, ended - begun, lists.times + first,
                              last - first, &shift));
        assert_int_equal(shift, (int64_t)begun - (int64_t)first);
    }
}

/* Few, and near each other; and lists of other times. */
static void test_few_and_none(void **test)
{
    (void)test;
    const struct prb_numbered events[] = {{7, 10}, {8, 11}};
    const double near[] = {9, 10.0001, 11.0002, 12}, far[] = {9.5, 10.5, 11.5};
    int64_t shift = INT64_MIN;
    assert_true(prb_align(events, 2, near, 4, &shift));
    assert_int_equal(shift, 1 - 7);
    assert_false(prb_align(events, 2, far, 3, &shift));
    assert_false(prb_align(events, 2, far, 0, &shift));
    assert_false(prb_align(events, 0, far, 3, &shift));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_that_overlap),
        cmocka_unit_test(test_few_and_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
