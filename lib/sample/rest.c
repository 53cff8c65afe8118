/*
 * Samples in which most threads rest (member.h).
 *
 * Where one thread keeps the GIL, all others stand where they stood, and the sampler does not read
 * them (py/stack.h, "standing").  Nor are their seats visited, but in the samples in which the
 * kernel is asked what they do (count.c): what they were left out of is counted then, or when
 * somebody reads the profile.  A sample costs what its active threads cost.
 */
#include "sample/member.h"

static bool wanted(const struct prb_member *member)
{
    return member->options->mode == PRB_PROFILE_ACTIVE && !member->options->whole_timeline;
}

uint64_t prb_rest_next(const struct prb_member *member, const struct prb_seat *seat)
{
    uint64_t next = member->number + 1;
    if (!prb_count_rests(member, seat) || !seat->asked_every)
        return next;
    uint64_t past = (next + seat->thread) % seat->asked_every;
    return past ? next + seat->asked_every - past : next;
}

static bool place_seats(struct prb_member *member)
{
    while (member->due_cap < member->seat_count)
        if (!PRB_GROW(member->due, member->due_cap, member->due_cap))
            return false;
    for (size_t k = 0; k < member->target->runtime_count; k++) {
        struct prb_naming *naming = &member->naming[k];
        const struct prb_raw_stacks *raw = prb_sampler_last(member->target->runtimes[k].sampler);
        while (naming->seat_of_cap < raw->thread_count)
            if (!PRB_GROW(naming->seat_of, naming->seat_of_cap, naming->seat_of_cap))
                return false;
        for (size_t i = 0; i < raw->thread_count; i++)
            naming->seat_of[i] = PRB_NO_ITEM;
        naming->serial = raw->serial;
    }
    return true;
}

void prb_rest_begin(struct prb_member *member)
{
    member->may_rest = wanted(member) && !member->newcomers && place_seats(member);
    for (size_t i = 0; member->may_rest && i < member->seat_count; i++) {
        const struct prb_seat *seat = member->seats[i];
        member->naming[seat->runtime].seat_of[seat->raw] = (uint32_t)i;
        member->due[i] = prb_rest_next(member, seat);
    }
}

bool prb_rest_stands(struct prb_member *member)
{
    if (!member->may_rest)
        return false;
    for (size_t k = 0; k < member->target->runtime_count; k++) {
        struct prb_naming *naming = &member->naming[k];
        const struct prb_raw_stacks *raw = prb_sampler_last(member->target->runtimes[k].sampler);
        if (!raw->standing || raw->serial != ++naming->serial)
            return false;
        for (size_t a = 0; a < raw->active_count; a++) {
            uint32_t seat = naming->seat_of[raw->active[a]];
            if (seat == PRB_NO_ITEM)
                return false; /* it may have begun by now */
            member->due[seat] = 0;
        }
    }
    return true;
}

void prb_rest_missed(struct prb_member *member, struct prb_seat *seat, uint64_t samples)
{
    struct prb_profile_thread *thread = &member->box->threads[seat->thread];
    if (!samples)
        return;
    member->box->profile.thread_samples += samples;
    thread->samples += samples;
    thread->idle_samples += samples;
    thread->seen = member->box->profile.samples;
    seat->unasked += (unsigned)samples;
}
