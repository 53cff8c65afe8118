/*
 * Samples in which most threads are idle (process.h).
 *
 * While one thread holds the GIL, no other moves in Python, and the sampler does not read the
 * others (py/stack.h, "active_only").  They are visited only in the samples in which their activity is
 * read (count.c), or, where the mode needs no activity, when they have moved.  The samples between are
 * counted then, or when somebody reads the profile.  So a sample costs what its active threads cost.
 */
#include "sample/process.h"

/* Whether a sample counts a thread without knowing whether it runs; one that is unmoved counts as in
 * the sample before. */
static bool counts_alike(const struct prb_profiler_options *options)
{
    return (options->mode == PRB_PROFILE_WALL || options->mode == PRB_PROFILE_GIL) &&
           !options->states && !options->native && !options->async;
}

static bool wanted(const struct prb_sampled_process *process)
{
    const struct prb_profiler_options *options = process->options;
    return (options->mode == PRB_PROFILE_ACTIVE || counts_alike(options)) &&
           !options->whole_timeline;
}

uint64_t prb_idle_next_visit(const struct prb_sampled_process *process,
                             const struct prb_sampled_thread *thread)
{
    uint64_t next = process->number + 1;
    if (counts_alike(process->options))
        return thread->has_stack && prb_thread_unmoved(process, thread) ? UINT64_MAX : next;
    if (!prb_thread_still_waits(process, thread) || !thread->activity_every)
        return next;
    uint64_t past = (next + thread->index) % thread->activity_every;
    return past ? next + thread->activity_every - past : next;
}

static bool map_threads(struct prb_sampled_process *process)
{
    while (process->due_cap < process->thread_count)
        if (!PRB_GROW(process->due, process->due_cap, process->due_cap))
            return false;
    for (size_t k = 0; k < process->target->runtime_count; k++) {
        struct prb_runtime_names *naming = &process->names[k];
        const struct prb_raw_stacks *raw = prb_sampler_last(process->target->runtimes[k].sampler);
        while (naming->thread_of_cap < raw->thread_count)
            if (!PRB_GROW(naming->thread_of, naming->thread_of_cap, naming->thread_of_cap))
                return false;
        for (size_t i = 0; i < raw->thread_count; i++)
            naming->thread_of[i] = PRB_NO_ITEM;
        naming->serial = raw->serial;
    }
    return true;
}

void prb_idle_begin(struct prb_sampled_process *process)
{
    process->may_skip = wanted(process) && !process->unnamed && map_threads(process);
    for (size_t i = 0; process->may_skip && i < process->thread_count; i++) {
        const struct prb_sampled_thread *thread = process->threads[i];
        process->names[thread->runtime].thread_of[thread->raw] = (uint32_t)i;
        process->due[i] = prb_idle_next_visit(process, thread);
    }
}

bool prb_idle_proven(struct prb_sampled_process *process)
{
    if (!process->may_skip)
        return false;
    for (size_t k = 0; k < process->target->runtime_count; k++) {
        struct prb_runtime_names *naming = &process->names[k];
        const struct prb_raw_stacks *raw = prb_sampler_last(process->target->runtimes[k].sampler);
        if (!raw->active_only || raw->serial != ++naming->serial)
            return false;
        for (size_t a = 0; a < raw->active_count; a++) {
            uint32_t thread = naming->thread_of[raw->active[a]];
            if (thread == PRB_NO_ITEM)
                return false; /* it may have begun by now */
            process->due[thread] = 0;
        }
    }
    return true;
}

void prb_idle_count_missed(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                           uint64_t samples)
{
    struct prb_profile_thread *row = &process->box->threads[thread->index];
    if (!samples)
        return;
    process->box->profile.thread_samples += samples;
    row->samples += samples;
    row->seen = process->box->profile.samples;
    if (counts_alike(process->options)) {
        prb_count_again(process, thread, samples);
        return;
    }
    row->idle_samples += samples;
    thread->activity_age += (unsigned)samples;
}
