/* fleet: which crash dumps an agent has told. */
#include "unit.h"

#include "fleet/agent/told.h"

#define FOLDER 1000u

/* A folder with its newest dumps, last of them number last; how many are told that were not before. */
static unsigned look(struct prb_told *told, uint64_t last)
{
    unsigned found = 0;
    prb_told_look(told);
    for (uint64_t hash = last - FOLDER + 1; hash <= last; hash++)
        if (!prb_told_has(told, hash)) {
            assert_true(prb_told_add(told, hash));
            found++;
        }
    prb_told_looked(told);
    return found;
}

/* Each is told once, the hundred thousandth, too, and there is room for no more than is needed. */
static void test_many(void **state)
{
    (void)state;
    struct prb_told told = {0};
    assert_int_equal(look(&told, FOLDER), FOLDER);
    for (uint64_t last = FOLDER + 100; last <= 120000; last += 100)
        assert_int_equal(look(&told, last), 100);
    assert_int_equal(look(&told, 119900 + 100), 0);
    assert_in_range(told.count, FOLDER, FOLDER + PRB_TOLD_KEPT);
    prb_told_deinit(&told);
}

/* What a look did not come to is not forgotten. */
static void test_failed(void **state)
{
    (void)state;
    struct prb_told told = {0};
    for (uint64_t hash = 0; hash < PRB_TOLD_KEPT + FOLDER; hash++)
        assert_true(prb_told_add(&told, hash));
    prb_told_look(&told);
    prb_told_look(&told);
    assert_true(prb_told_has(&told, 1));
    assert_int_equal(told.count, PRB_TOLD_KEPT + FOLDER);
    prb_told_looked(&told);
    assert_int_equal(told.count, 1);
    prb_told_deinit(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
