/*
 * What recording costs: turns of the same code, with nothing of PyTorch in it, when recording begins
 * for the first time: the rows that it writes would later take the place of the user's.  In place it
 * costs more, as caches are cold then: the account doubles it.
 */
#include "inject/probe/torch/torch.h"

/* The fastest batch counts.  They are short, so that on a busy machine, too, there is one in which
 * this thread kept the CPU, and no page of the ring came to be. */
#define TURNS 40
#define BATCHES 24
#define DOUBT 2

static _Atomic double per_call, per_row, per_scope, per_memory; /* ns */

double prb_torch_cost(uint64_t calls, uint64_t rows, uint64_t scopes)
{
    return DOUBT * ((double)calls * per_call + (double)rows * per_row + (double)scopes * per_scope +
                    (double)(rows + scopes) * per_memory);
}

/* As for a module's call without a row: one look at the clock, the thread, its counts. */
static void turn_call(struct prb_torch_thread *thread)
{
    thread = prb_torch_thread();
    thread->since = prb_clock_ns();
    thread->calls++;
    prb_torch_number(thread, 0);
}

/* What a row adds: another look at the clock, and what is written.  No table shows the row. */
static void turn_row(struct prb_torch_thread *thread)
{
    const struct prb_torch_event event = {.begin = thread->since,
                                          .end = prb_clock_ns(),
                                          .label = prb_torch_label("Module", 6),
                                          .stage = PRB_TRACE_STAGES};
    thread->rows++;
    prb_torch_record(&event);
}

static void turn_scope(struct prb_torch_thread *thread)
{
    static const char name[] = "Optimizer.step#SGD.step";
    prb_torch_label(name, sizeof name - 1);
    turn_call(thread);
    prb_torch_enter(thread, PRB_PHASE_OPTIMIZER, prb_clock_ns());
    prb_torch_leave(thread, prb_clock_ns());
    turn_row(thread);
}

/* At the begin and at the end of what has a row. */
static void turn_memory(struct prb_torch_thread *thread)
{
    struct prb_cuda_memory before, after;
    (void)thread;
    prb_cuda_memory_read(&before);
    prb_cuda_memory_read(&after);
    __asm__ volatile("" : : "m"(before), "m"(after));
}

static double measure(void (*turn)(struct prb_torch_thread *thread),
                      struct prb_torch_thread *thread)
{
    uint64_t least = UINT64_MAX;
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t begin = prb_clock_ns();
        for (int i = 0; i < TURNS; i++)
            turn(thread);
        uint64_t took = prb_clock_ns() - begin;
        least = took < least ? took : least;
    }
    return (double)least / TURNS;
}

void prb_torch_cost_measure(void)
{
    struct prb_torch_thread *thread = per_call > 0 ? NULL : prb_torch_thread();
    if (!thread)
        return;
    per_call = measure(turn_call, thread);
    per_row = measure(turn_row, thread);
    per_scope = measure(turn_scope, thread);
}

void prb_torch_cost_measure_memory(void)
{
    if (per_memory == 0)
        per_memory = measure(turn_memory, NULL);
}
