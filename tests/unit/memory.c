/* Random distances and weights of sampled allocations: inject/probe/memory/random.c, against libm. */
#include "unit.h"

#include <math.h>

#include "inject/probe/memory/memory.h"

#define DRAWS 1000000

static void test_chance(void **state)
{
    (void)state;
    for (double x = 1e-12; x < 100; x *= 1.01) {
        double right = -expm1(-x), told = prb_memory_chance(x);
        if (fabs(told - right) > 1e-9 * right)
            fail_msg("1 - e^-%g is %.15g, not %.15g", x, right, told);
    }
    assert_true(prb_memory_chance(0) == 0 && prb_memory_chance(1e30) == 1);
    assert_true(prb_memory_chance(-1) == 0 && prb_memory_chance(NAN) == 0);
}

/* Mean, variance and the share above 1 of a million draws, each within five of its deviations. */
static void test_exponential(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252u;
    double sum = 0, squares = 0;
    unsigned above = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = prb_memory_exponential(&seed);
        assert_true(x >= 0 && x < 40);
        sum += x;
        squares += x * x;
        above += x > 1;
    }
    assert_true(fabs(sum / DRAWS - 1) < 5 / sqrt(DRAWS));
    assert_true(fabs(squares / DRAWS - 2) < 5 * sqrt(20.0 / DRAWS));
    double share = exp(-1);
    assert_true(fabs((double)above / DRAWS - share) < 5 * sqrt(share * (1 - share) / DRAWS));
}

/* Blocks of mixed sizes, sampled as the hooks do it: the weighted sum has no bias. */
static void test_sums_have_no_bias(void **state)
{
    (void)state;
    static const unsigned sizes[] = {16, 48, 500, 4000, 70000, 2000000};
    const double period = 65536;
    uint64_t seed = 1234567;
    double truth = 0, estimate = 0, variance = 0;
    double left = prb_memory_exponential(&seed) * period;
    for (int i = 0; i < 2000000; i++) {
        double size = sizes[prb_memory_random(&seed) % 6];
        truth += size;
        if ((left -= size) >= 0)
            continue;
        double chance = prb_memory_chance(size / period);
        estimate += size / chance;
        variance += size * size * (1 - chance) / (chance * chance);
        left = prb_memory_exponential(&seed) * period;
    }
    assert_true(fabs(estimate - truth) < 5 * sqrt(variance));
    assert_true(sqrt(variance) < 0.01 * truth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chance),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_sums_have_no_bias),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
