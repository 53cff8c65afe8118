/* Steps of PyTorch tracing, made of calls as its hooks make them; no interpreter and no PyTorch. */
#include "unit.h"

#include <limits.h>

#include "inject/probe/torch/torch.h"

#define SECOND UINT64_C(1000000000)

static struct prb_torch_now told[64];
static unsigned told_count;

static void hear(const struct prb_torch_now *now)
{
    if (told_count < sizeof told / sizeof *told)
        told[told_count++] = *now;
}

static struct prb_torch_thread *begin(void)
{
    told_count = 0;
    assert_true(prb_torch_listen(hear));
    assert_true(prb_torch_listen(hear)); /* once */
    atomic_fetch_add(&prb_torch.arming, 1);
    prb_torch_steps_begin();
    return prb_torch_thread();
}

static uint64_t at = 1000000;

static void forward(struct prb_torch_thread *thread)
{
    prb_torch_root_begins(thread, at += 10);
    prb_torch_root_ends(thread, at += 100);
}

static void backward(struct prb_torch_thread *thread)
{
    atomic_fetch_add(&prb_torch.backward, 1);
    prb_torch_backward_begins(thread, at += 10);
    atomic_fetch_sub(&prb_torch.backward, 1);
    prb_torch_backward_ends(thread, at += 200);
}

static void update(struct prb_torch_thread *thread, uintptr_t optimizer)
{
    prb_torch_enter(thread, PRB_PHASE_OPTIMIZER, at += 10);
    prb_torch_leave(thread, at += 50);
    prb_torch_optimizer_ends(thread, at, optimizer, 1);
}

static int64_t step_now(void) { return atomic_load(&prb_torch.step); }

static void test_an_update_ends_with_what_follows(void **state)
{
    struct prb_torch_thread *thread = begin();
    (void)state;
    forward(thread);
    backward(thread);
    update(thread, 7);
    update(thread, 7); /* ZeRO's parts */
    assert_int_equal(step_now(), 0);
    assert_int_equal(prb_torch_steps_ended(), 0);
    forward(thread);
    assert_int_equal(step_now(), 1);
    backward(thread);
    backward(thread);
    assert_int_equal(atomic_load(&prb_torch.micro_step), 2);
    update(thread, 7);
    assert_int_equal(prb_torch_steps_ended(), 1);
    prb_torch_data_begins(thread, at);
    assert_int_equal(step_now(), 2);
    assert_int_equal(atomic_load(&prb_torch.micro_step), 0);
}

static void test_only_the_anchor_ends_steps(void **state)
{
    struct prb_torch_thread *thread = begin();
    (void)state;
    prb_torch_anchor(7, false);
    for (int i = 0; i < 3; i++) {
        forward(thread);
        backward(thread);
        update(thread, 8); /* a generator's */
        forward(thread);
        backward(thread);
        update(thread, 7);
    }
    assert_int_equal(step_now(), 2);
    assert_int_equal(prb_torch_steps_ended(), 2);
}

/* Behind the usual number of optimizers, what follows is of the next step. */
static void test_what_follows_an_update(void **state)
{
    struct prb_torch_thread *thread = begin();
    (void)state;
    for (int i = 0; i < 2; i++) {
        backward(thread);
        update(thread, 7);
        if (i)
            assert_int_equal(prb_torch_step_of(false), 1);
        update(thread, 8);
        if (i)
            assert_int_equal(prb_torch_step_of(false), 2);
    }
}

/* All of a step inside optimizer.step(closure): each moment belongs to the innermost phase. */
static void test_a_closure(void **state)
{
    struct prb_torch_thread *thread = begin();
    (void)state;
    prb_torch_enter(thread, PRB_PHASE_OPTIMIZER, at += 10);
    thread->spent[PRB_PHASE_OTHER] = 0;
    forward(thread);  /* 10 of the optimizer, 100 */
    backward(thread); /* 10, 200 */
    prb_torch_leave(thread, at += 30);
    assert_int_equal(thread->spent[PRB_PHASE_OPTIMIZER], 10 + 10 + 30);
    assert_int_equal(thread->spent[PRB_PHASE_FORWARD], 100);
    assert_int_equal(thread->spent[PRB_PHASE_BACKWARD], 200);
    assert_int_equal(thread->spent[PRB_PHASE_OTHER], 0);
}

static void test_roots_are_steps_without_an_optimizer(void **state)
{
    struct prb_torch_thread *thread = begin();
    (void)state;
    prb_torch_anchor(0, true);
    forward(thread);
    forward(thread);
    assert_int_equal(step_now(), 2);
    backward(thread); /* it trains after all */
    forward(thread);
    assert_int_equal(step_now(), 2);
}

static void test_moments(void **state)
{
    struct prb_torch_thread *thread = begin();
    (void)state;
    backward(thread);
    backward(thread);
    update(thread, 7);
    assert_int_equal(told_count, 3);
    assert_int_equal(told[0].moment, PRB_TORCH_BACKWARD_ENDS);
    assert_int_equal(told[1].micro_step, 1);
    assert_int_equal(told[2].moment, PRB_TORCH_STEP_ENDS);
    assert_false(told[2].gil);
    prb_torch_unlisten(hear);
    update(thread, 7);
    assert_int_equal(told_count, 3);
}

static void test_which_steps_are_sampled(void **state)
{
    (void)state;
    prb_torch_set_rate(0.25);
    struct prb_torch_thread *thread = begin();
    for (int i = 0; i < 8; i++) {
        assert_int_equal(atomic_load(&prb_torch.sampled), i % 4 == 0);
        backward(thread);
        update(thread, 7);
        forward(thread);
    }
    prb_torch_set_rate(-1);
}

/* Too much for 10 s: half as many steps, down to the floor; then fewer modules; then back. */
static void test_what_costs_too_much_is_recorded_less(void **state)
{
    uint64_t now = 1;
    (void)state;
    begin();
    prb_torch_control_begin(false);
    for (int i = 0; i < 100; i++)
        assert_int_equal(prb_torch_control_step(0.05, now += SECOND), 1);
    prb_torch_control_begin(true); /* a floor of 0.01: 128 */
    unsigned last = 1;
    for (int i = 0; i < 100; i++) {
        unsigned factor = prb_torch_control_step(0.05, now += SECOND);
        assert_true(factor == last || factor == 2 * last);
        last = factor;
    }
    assert_int_equal(last, 128);
    assert_int_equal(atomic_load(&prb_torch.shallow), 0);
    for (int i = 0; i < 2000; i++)
        last = prb_torch_control_step(0.0001, now += SECOND);
    assert_int_equal(last, 1);
    assert_int_equal(atomic_load(&prb_torch.shallow), UINT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_update_ends_with_what_follows),
        cmocka_unit_test(test_only_the_anchor_ends_steps),
        cmocka_unit_test(test_what_follows_an_update),
        cmocka_unit_test(test_a_closure),
        cmocka_unit_test(test_roots_are_steps_without_an_optimizer),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_which_steps_are_sampled),
        cmocka_unit_test(test_what_costs_too_much_is_recorded_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
