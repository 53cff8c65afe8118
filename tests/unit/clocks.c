/* Clocks of ranks: made-up collectives whose true offsets are known. */
#include "comm/clocks.h"

#include <math.h>

#include "unit.h"

#define RANKS 4

static uint64_t state;

/* From 0 to 1, the same in each run. */
static double chance(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

struct truth {
    double offset[RANKS], drift[RANKS], now;
};

static double shown(const struct truth *truth, size_t rank, double time)
{
    return time + truth->offset[rank] + truth->drift[rank] * (time - truth->now);
}

/* A collective at a true time: ranks come within `late`, and each leaves up to `transfer` after the last one came. */
static void collective(struct prb_clocks *clocks, const struct truth *truth, double time,
                       double late, double transfer)
{
    struct prb_clock_part parts[RANKS];
    double begin[RANKS], last = 0;
    for (size_t i = 0; i < RANKS; i++) {
        begin[i] = time + chance() * late;
        last = begin[i] > last ? begin[i] : last;
    }
    for (size_t i = 0; i < RANKS; i++)
        parts[i] = (struct prb_clock_part){i, shown(truth, i, begin[i]),
                                           shown(truth, i, last + 1e-6 + chance() * transfer)};
    prb_clocks_add(clocks, parts, RANKS);
}

static double truly(const struct truth *truth, size_t of, size_t from)
{
    return truth->offset[of] - truth->offset[from];
}

static void test_the_truth_is_always_inside(void **unused)
{
    (void)unused;
    for (int run = 0; run < 1000; run++) {
        struct truth truth = {.now = 1.7e9};
        state = (uint64_t)run;
        for (size_t i = 0; i < RANKS; i++) {
            truth.offset[i] = (chance() - 0.5) * (run % 3 ? 1 : 1e-3);
            truth.drift[i] = (chance() - 0.5) * PRB_CLOCK_DRIFT;
        }
        PRB_AUTO(prb_clocks) struct prb_clocks *clocks = prb_clocks_new(RANKS, truth.now, NULL);
        assert_non_null(clocks);
        for (int k = 0; k < 10; k++)
            collective(clocks, &truth, truth.now - 0.02 * k, 2e-3, 5e-4);
        collective(clocks, &truth, truth.now - 3000, 2e-3, 5e-4); /* long ago */
        assert_true(prb_clocks_solve(clocks, 0));
        for (size_t i = 0; i < RANKS; i++)
            for (size_t j = 0; j < RANKS; j++) {
                double offset, error;
                assert_true(prb_clocks_offset(clocks, i, j, &offset, &error));
                assert_true(fabs(offset - truly(&truth, i, j)) <= error + 1e-6);
                assert_true(error <= 1e-3); /* the bar */
            }
    }
}

static void test_along_another_rank(void **unused)
{
    (void)unused;
    /* 0 and 1, then 1 and 2, never 0 and 2 */
    const struct prb_clock_part first[] = {{0, 10, 10.001}, {1, 15, 15.001}};
    const struct prb_clock_part second[] = {{1, 16, 16.001}, {2, 9, 9.001}};
    double offset, error;
    PRB_AUTO(prb_clocks) struct prb_clocks *clocks = prb_clocks_new(3, 10, NULL);
    prb_clocks_add(clocks, first, 2);
    prb_clocks_add(clocks, second, 2);
    assert_true(prb_clocks_solve(clocks, 0));
    assert_true(prb_clocks_offset(clocks, 2, 0, &offset, &error));
    assert_true(fabs(offset - (5 - 7)) <= error && error < 0.003);
    assert_true(prb_clocks_offset(clocks, 0, 2, &offset, &error));
    assert_true(fabs(offset - 2) <= error);
}

static void test_nothing_known(void **unused)
{
    (void)unused;
    const struct prb_clock_part begun[] = {{0, 10, NAN}, {1, 10, NAN}};
    double offset, error;
    PRB_AUTO(prb_clocks) struct prb_clocks *clocks = prb_clocks_new(2, 10, NULL);
    prb_clocks_add(clocks, begun, 2);
    assert_true(prb_clocks_solve(clocks, 0));
    assert_false(prb_clocks_offset(clocks, 0, 1, &offset, &error));
    assert_null(prb_clocks_new(PRB_CLOCK_RANKS_MAX + 1, 0, NULL));
}

static void test_a_contradiction_is_found(void **unused)
{
    (void)unused;
    /* Not the same collective: rank 1 ended the one before rank 0 began the other. */
    const struct prb_clock_part wrong[] = {{0, 10, 10.001}, {1, 8, 8.001}};
    const struct prb_clock_part right[] = {{0, 11, 11.001}, {1, 11, 11.001}};
    double offset, error;
    PRB_AUTO(prb_clocks) struct prb_clocks *clocks = prb_clocks_new(2, 10, NULL);
    prb_clocks_add(clocks, wrong, 2);
    prb_clocks_add(clocks, right, 2);
    assert_false(prb_clocks_solve(clocks, 1e-6));
    assert_false(prb_clocks_offset(clocks, 0, 1, &offset, &error));
}

static void test_one_machine(void **unused)
{
    (void)unused;
    /* Ranks 0 and 1 show the same; 2 was set 123 ms forward. */
    const struct prb_clock_part parts[] = {
        {0, 10, 10.002}, {1, 10.001, 10.002}, {2, 10.1235, 10.125}};
    double offset, error;
    PRB_AUTO(prb_clocks) struct prb_clocks *clocks = prb_clocks_new(3, 10, NULL);
    prb_clocks_add(clocks, parts, 3);
    assert_true(prb_clocks_solve(clocks, 1e-6));
    assert_true(prb_clocks_offset(clocks, 1, 0, &offset, &error));
    assert_true(fabs(offset) <= 1e-6 && error <= 1e-6);
    assert_true(prb_clocks_offset(clocks, 2, 0, &offset, &error));
    assert_true(fabs(offset - 0.123) <= error && error < 0.002 && error > 1e-4);
}

/* Shifts that each could be none, but together cannot. */
static void test_small_shifts_add_up(void **unused)
{
    (void)unused;
    const struct prb_clock_part first[] = {{0, 10, 10.001}, {1, 10.0009, 10.0019}};
    const struct prb_clock_part second[] = {{1, 11.0009, 11.0019}, {2, 11.0018, 11.0028}};
    const struct prb_clock_part third[] = {{0, 12, 12.0001}, {2, 12.0018, 12.0019}};
    double offset, error;
    PRB_AUTO(prb_clocks) struct prb_clocks *clocks = prb_clocks_new(3, 11, NULL);
    prb_clocks_add(clocks, first, 2);
    prb_clocks_add(clocks, second, 2);
    prb_clocks_add(clocks, third, 2);
    assert_true(prb_clocks_solve(clocks, 1e-6));
    assert_true(prb_clocks_offset(clocks, 2, 0, &offset, &error));
    assert_true(fabs(offset - 0.0018) <= error + 1e-4);
    assert_true(prb_clocks_offset(clocks, 1, 0, &offset, &error));
    assert_true(fabs(offset - 0.0009) <= error + 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_truth_is_always_inside),
        cmocka_unit_test(test_along_another_rank),
        cmocka_unit_test(test_nothing_known),
        cmocka_unit_test(test_a_contradiction_is_found),
        cmocka_unit_test(test_one_machine),
        cmocka_unit_test(test_small_shifts_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
