/*
 * What a thread does at a sample, whether that counts by the mode, and its intervals (process.h).
 */
#include "sample/process.h"

#include <sys/syscall.h>

void prb_close_interval(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                        uint64_t now)
{
    if (thread->open)
        prb_profile_add_interval(process->box, thread->index, thread->interval.node,
                                 thread->interval.state, thread->interval.start, now,
                                 thread->interval.samples, thread->interval.ns);
    thread->open = false;
}

static const struct prb_interpreter *interpreter_of(const struct prb_sampled_process *process,
                                                    const struct prb_sampled_thread *thread)
{
    const struct prb_raw_stacks *raw =
        prb_sampler_last(process->target->runtimes[thread->runtime].sampler);
    return &raw->interpreters[raw->threads[thread->raw].interpreter];
}

static const char *wait_name(struct prb_sampled_process *process,
                             const struct prb_sampled_thread *thread,
                             const struct prb_interpreter *interpreter, unsigned *state)
{
    char buffer[32];
    const char *name = prb_system_call_name(thread->activity.call, buffer);
    if (thread->activity.call == SYS_futex && interpreter->gil_holder &&
        prb_futex_of_gil(&process->target->runtimes[thread->runtime], interpreter,
                         thread->activity.argument)) {
        *state |= PRB_SAMPLED_WANTS_GIL;
        name = "GIL";
    }
    return prb_profile_text(process->box, name);
}

/*
 * A thread that waited and had no GIL since still waits, or runs native code.  Reading its activity
 * is most of what such a thread costs, so it is read in every fourth sample only, and ever less
 * often if it does not run at all.  What it ran meanwhile is counted then (catch_up).
 */
#define ACTIVITY_EVERY 4
#define ACTIVITY_EVERY_MAX 64
#define ACTIVITY_EVERY_NS 640000000 /* but at least so often */

bool prb_thread_unmoved(const struct prb_sampled_process *process,
                        const struct prb_sampled_thread *thread)
{
    const struct prb_raw_stacks *raw =
        prb_sampler_last(process->target->runtimes[thread->runtime].sampler);
    return raw->threads[thread->raw].unmoved;
}

bool prb_thread_still_waits(const struct prb_sampled_process *process,
                            const struct prb_sampled_thread *thread)
{
    return thread->has_task && thread->has_stack && prb_thread_unmoved(process, thread) &&
           thread->activity.known && thread->activity.waits;
}

static bool may_wait_on(const struct prb_sampled_process *process,
                        const struct prb_sampled_thread *thread)
{
    return process->options->mode == PRB_PROFILE_ACTIVE && !process->options->whole_timeline &&
           prb_thread_still_waits(process, thread) &&
           thread->activity_age + 1 < thread->activity_every &&
           (process->number + thread->index) % thread->activity_every != 0;
}

static void choose_next_reading(struct prb_sampled_thread *thread, uint64_t period)
{
    bool idle = thread->activity.known && thread->activity.waits && !thread->activity.used_ns;
    unsigned every = thread->activity_every * 2;
    if (!idle || !thread->activity_every)
        thread->activity_every = ACTIVITY_EVERY;
    else if (every <= ACTIVITY_EVERY_MAX && every * period <= ACTIVITY_EVERY_NS)
        thread->activity_every = every;
}

/* PRB_SAMPLED_*; reads only what the mode needs. */
static unsigned read_state(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                           uint64_t period)
{
    const struct prb_interpreter *interpreter = interpreter_of(process, thread);
    struct prb_profile_thread *row = &process->box->threads[thread->index];
    enum prb_profile_mode mode = process->options->mode;
    unsigned state = 0;
    if (interpreter->gil_holder == thread->tstate)
        state = PRB_SAMPLED_GIL | (interpreter->gc ? PRB_SAMPLED_GC : 0);
    bool wanted =
        mode == PRB_PROFILE_ACTIVE || mode == PRB_PROFILE_EXCEPTION || process->options->states;
    if (!state && may_wait_on(process, thread)) {
        thread->activity_age++;
        return PRB_SAMPLED_IDLE | (row->state & PRB_SAMPLED_WANTS_GIL);
    }
    if (thread->has_task && (wanted || mode == PRB_PROFILE_CPU)) {
        prb_activity_read(&thread->activity, wanted && !state);
        row->cpu_ns += thread->activity.used_ns;
        choose_next_reading(thread, period);
    }
    row->waits = NULL;
    if (!wanted || state)
        return state;
    if (!thread->has_task || thread->activity.waits)
        state |= PRB_SAMPLED_IDLE;
    if (thread->has_task && thread->activity.waits)
        row->waits = wait_name(process, thread, interpreter, &state);
    return state;
}

/* ns that the sample counts for; 0: it does not count. */
static uint64_t worth(const struct prb_sampled_process *process,
                      const struct prb_sampled_thread *thread, unsigned state,
                      const struct prb_moment *moment)
{
    switch (process->options->mode) {
    case PRB_PROFILE_WALL:
        return moment->period;
    case PRB_PROFILE_GIL:
        return state & PRB_SAMPLED_GIL ? moment->period : 0;
    case PRB_PROFILE_CPU:
        return thread->activity.used_ns;
    case PRB_PROFILE_EXCEPTION:
        return !(state & PRB_SAMPLED_IDLE) &&
                       prb_thread_handles_exception(&process->target->runtimes[thread->runtime],
                                                    thread->tstate)
                   ? moment->period
                   : 0;
    default:
        return state & PRB_SAMPLED_IDLE ? 0 : moment->period;
    }
}

static void add_weight(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                       uint64_t samples, uint64_t ns)
{
    struct prb_profile_box *box = process->box;
    if (thread->weight == PRB_NO_ITEM || thread->weight_node != thread->counted_node) {
        thread->weight = prb_profile_weight(box, thread->index, thread->counted_node);
        thread->weight_node = thread->counted_node;
    }
    if (thread->weight == PRB_NO_ITEM)
        return;
    box->weights[thread->weight].samples += samples;
    box->weights[thread->weight].ns += ns;
}

static void add_to_interval(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                            unsigned state, uint64_t samples, uint64_t ns, uint64_t now)
{
    if (thread->open &&
        (thread->interval.node != thread->counted_node || thread->interval.state != state))
        prb_close_interval(process, thread, now);
    if (!thread->open) {
        thread->open = true;
        thread->interval.node = thread->counted_node;
        thread->interval.state = state;
        thread->interval.start = now;
        thread->interval.samples = thread->interval.ns = 0;
    }
    thread->interval.samples += samples;
    thread->interval.ns += ns;
}

/* The native frames may show that a running thread only spins, until a GPU or another rank is
 * done. */
static unsigned look_at_native(struct prb_sampled_process *process,
                               struct prb_sampled_thread *thread, unsigned state)
{
    struct prb_profile_thread *row = &process->box->threads[thread->index];
    const char *waits = NULL;
    prb_native_name(process, thread, &waits);
    row->node = thread->counted_node;
    if (!waits)
        return state;
    row->waits = prb_profile_text(process->box, waits);
    return state | PRB_SAMPLED_IDLE;
}

/* Count the samples in which its activity was not read and it ran, or waited for a CPU, as its CPU
 * time and delay say: with the stack that it had then.  state: what it does now, which is counted
 * by itself. */
static void catch_up(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                     unsigned state, const struct prb_moment *moment)
{
    struct prb_profile_thread *row = &process->box->threads[thread->index];
    uint64_t now_ns = state & PRB_SAMPLED_IDLE ? 0 : moment->period;
    thread->uncounted_ns += thread->activity.used_ns + thread->activity.delayed_ns;
    thread->uncounted_ns -= now_ns < thread->uncounted_ns ? now_ns : thread->uncounted_ns;
    uint64_t ran = thread->uncounted_ns / moment->period;
    thread->uncounted_ns %= moment->period;
    ran = ran < thread->activity_age ? ran : thread->activity_age;
    thread->activity_age = 0;
    thread->counted_node = row->node;
    if (!ran || !thread->counted_node)
        return;
    uint64_t span = ran * moment->period;
    prb_close_interval(process, thread, moment->now);
    for (uint64_t i = 0; i < ran; i++) {
        row->idle_samples -= row->idle_samples > 0;
        add_weight(process, thread, 1, moment->period);
        if (process->box->timeline.wanted)
            add_to_interval(process, thread, 0, 1, moment->period,
                            moment->now > span ? moment->now - span : 0);
    }
}

void prb_count_thread(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                      const struct prb_moment *moment)
{
    struct prb_profile_box *box = process->box;
    unsigned activity_age = thread->activity_age,
             state = read_state(process, thread, moment->period);
    struct prb_profile_thread *row = &box->threads[thread->index];
    if (activity_age && activity_age == thread->activity_age)
        catch_up(process, thread, state, moment);
    box->profile.thread_samples++;
    if (!thread->has_stack) {
        box->profile.dropped++;
        row->dropped++;
        return;
    }
    row->node = thread->counted_node = thread->with_tasks;
    row->seen = box->profile.samples;
    row->samples++;
    uint64_t ns = thread->node ? worth(process, thread, state, moment) : 0;
    bool kept = ns || (thread->node && process->options->whole_timeline);
    if (kept && process->options->native) {
        unsigned before = state;
        state = look_at_native(process, thread, state);
        ns = state == before ? ns : worth(process, thread, state, moment);
        kept = ns || process->options->whole_timeline;
    }
    row->state = state;
    row->gil_samples += !!(state & PRB_SAMPLED_GIL);
    row->idle_samples += !!(state & PRB_SAMPLED_IDLE);
    if (ns)
        add_weight(process, thread, 1, ns);
    if (!kept) {
        prb_close_interval(process, thread, moment->now);
        return;
    }
    if (box->timeline.wanted)
        add_to_interval(process, thread, state, 1, ns, moment->now);
}

void prb_count_again(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                     uint64_t samples)
{
    uint64_t ns = samples * (uint64_t)(1e9 / process->options->rate);
    if (process->options->mode != PRB_PROFILE_WALL || !thread->node)
        return; /* it had no GIL, or no frame */
    add_weight(process, thread, samples, ns);
    if (thread->open) {
        thread->interval.samples += samples;
        thread->interval.ns += ns;
    }
}
