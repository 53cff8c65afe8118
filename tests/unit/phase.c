/* training: which functions are which part of a step, and what counts of a stack. */
#include "unit.h"

#include "training/phase.h"

#define SITE "/venv/lib/python3.11/site-packages/"

static void functions_by_file_and_name(void **state)
{
    (void)state;
    static const struct {
        const char *file, *name;
        enum prb_phase phase;
    } cases[] = {
        {SITE "torch/utils/data/dataloader.py", "__next__", PRB_PHASE_DATA},
        {SITE "torch/utils/data/dataloader.py", "__len__", PRB_PHASE_OTHER},
        {SITE "torch/nn/modules/module.py", "_call_impl", PRB_PHASE_FORWARD},
        {"torch/nn/modules/module.py", "_wrapped_call_impl", PRB_PHASE_FORWARD},
        {SITE "mytorch/nn/modules/module.py", "_call_impl", PRB_PHASE_OTHER},
        {SITE "torch/optim/adamw.py", "anything", PRB_PHASE_OPTIMIZER},
        {SITE "torch/optim/optimizer.py", "zero_grad", PRB_PHASE_ZERO_GRAD},
        {SITE "nottorch/optim/adamw.py", "step", PRB_PHASE_OTHER},
        {SITE "torch/distributed/distributed_c10d.py", "all_reduce", PRB_PHASE_COMMUNICATION},
        {SITE "torch/distributed/distributed_c10d.py", "all_reduce_", PRB_PHASE_OTHER},
        {SITE "torch/distributed/distributed_c10d.py", "get_rank", PRB_PHASE_OTHER},
        {SITE "torch/serialization.py", "save", PRB_PHASE_CHECKPOINT},
        {"train.py", "closure", PRB_PHASE_CLOSURE},
        {"", "", PRB_PHASE_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(prb_phase_of_function(cases[i].file, cases[i].name), cases[i].phase);
}

static void expect(const enum prb_phase *functions, enum prb_phase phase,
                   enum prb_phase_activity activity)
{
    struct prb_phase_state at = {0};
    for (; *functions != PRB_PHASE_OTHER; functions++)
        prb_phase_enter(&at, *functions);
    assert_int_equal(at.phase, phase);
    assert_int_equal(at.activity, activity);
}
#define STACK(...) ((const enum prb_phase[]){__VA_ARGS__, PRB_PHASE_OTHER})

static void the_outermost_counts(void **state)
{
    (void)state;
    enum prb_phase forward = PRB_PHASE_FORWARD, backward = PRB_PHASE_BACKWARD,
                   optimizer = PRB_PHASE_OPTIMIZER, data = PRB_PHASE_DATA,
                   communication = PRB_PHASE_COMMUNICATION, wait = PRB_PHASE_WAIT;
    expect(STACK(forward, forward), forward, PRB_ACTIVITY_NONE);
    expect(STACK(backward, forward), backward, PRB_ACTIVITY_RECOMPUTE);
    expect(STACK(backward, forward, communication), backward, PRB_ACTIVITY_COMMUNICATION);
    expect(STACK(optimizer, communication), optimizer, PRB_ACTIVITY_COMMUNICATION);
    expect(STACK(communication, communication), communication, PRB_ACTIVITY_NONE);
    expect(STACK(data, forward), data, PRB_ACTIVITY_NONE);
    expect(STACK(data, wait), data, PRB_ACTIVITY_WAIT);
    expect(STACK(wait), PRB_PHASE_OTHER, PRB_ACTIVITY_WAIT);
}

/* As Lightning has it: the whole step runs in optimizer.step(closure). */
static void a_closure_is_not_the_optimizer(void **state)
{
    (void)state;
    enum prb_phase optimizer = PRB_PHASE_OPTIMIZER;
    expect(STACK(optimizer, PRB_PHASE_FORWARD), PRB_PHASE_FORWARD, PRB_ACTIVITY_NONE);
    expect(STACK(optimizer, PRB_PHASE_BACKWARD, PRB_PHASE_FORWARD), PRB_PHASE_BACKWARD,
           PRB_ACTIVITY_RECOMPUTE);
    expect(STACK(optimizer, PRB_PHASE_DATA), PRB_PHASE_DATA, PRB_ACTIVITY_NONE);
    expect(STACK(optimizer, optimizer), optimizer, PRB_ACTIVITY_NONE);
    enum prb_phase closure =
        prb_phase_of_function(SITE "lightning/pytorch/loops/optimization/automatic.py", "closure");
    expect(STACK(optimizer, closure), PRB_PHASE_OTHER, PRB_ACTIVITY_NONE);
    expect(STACK(optimizer, closure, PRB_PHASE_ZERO_GRAD), PRB_PHASE_ZERO_GRAD, PRB_ACTIVITY_NONE);
    expect(STACK(PRB_PHASE_BACKWARD, closure), PRB_PHASE_BACKWARD, PRB_ACTIVITY_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_by_file_and_name),
        cmocka_unit_test(the_outermost_counts),
        cmocka_unit_test(a_closure_is_not_the_optimizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
