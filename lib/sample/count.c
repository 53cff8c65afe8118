/*
 * What a thread does at a sample, whether that counts by the mode, and its stays (member.h).
 */
#include "sample/member.h"

#include <sys/syscall.h>

void prb_close_stay(struct prb_member *member, struct prb_seat *seat, uint64_t now)
{
    if (seat->open)
        prb_profile_add_stay(member->box, seat->thread, seat->stay.node, seat->stay.state,
                             seat->stay.start, now, seat->stay.samples, seat->stay.ns);
    seat->open = false;
}

static const struct prb_interpreter *interpreter_of(const struct prb_member *member,
                                                    const struct prb_seat *seat)
{
    const struct prb_raw_stacks *raw =
        prb_sampler_last(member->target->runtimes[seat->runtime].sampler);
    return &raw->interpreters[raw->threads[seat->raw].interpreter];
}

static const char *wait_name(struct prb_member *member, const struct prb_seat *seat,
                             const struct prb_interpreter *interpreter, unsigned *state)
{
    char buffer[32];
    const char *name = prb_call_name(seat->doing.call, buffer);
    if (seat->doing.call == SYS_futex && interpreter->gil_holder &&
        prb_futex_of_gil(&member->target->runtimes[seat->runtime], interpreter,
                         seat->doing.argument)) {
        *state |= PRB_SAMPLED_WANTS_GIL;
        name = "GIL";
    }
    return prb_profile_text(member->box, name);
}

/*
 * A thread that waited and had no GIL since waits still, or runs native code: it is asked only
 * every fourth sample, by turns, as reading its file is most of what such a thread costs, and one
 * that never ran ever less often.  What it ran meanwhile is counted then (catch_up).
 */
#define ASKED_EVERY 4
#define ASKED_EVERY_MAX 64
#define ASKED_EVERY_NS 640000000 /* but at least so often */

bool prb_count_rests(const struct prb_member *member, const struct prb_seat *seat)
{
    const struct prb_raw_stacks *raw =
        prb_sampler_last(member->target->runtimes[seat->runtime].sampler);
    return seat->has_task && seat->told && raw->threads[seat->raw].at_rest && seat->doing.known &&
           seat->doing.waits;
}

static bool may_wait_on(const struct prb_member *member, const struct prb_seat *seat)
{
    return member->options->mode == PRB_PROFILE_ACTIVE && !member->options->whole_timeline &&
           prb_count_rests(member, seat) && seat->unasked + 1 < seat->asked_every &&
           (member->number + seat->thread) % seat->asked_every != 0;
}

static void choose_next_look(struct prb_seat *seat, uint64_t period)
{
    bool rests = seat->doing.known && seat->doing.waits && !seat->doing.used_ns;
    unsigned every = seat->asked_every * 2;
    if (!rests || !seat->asked_every)
        seat->asked_every = ASKED_EVERY;
    else if (every <= ASKED_EVERY_MAX && every * period <= ASKED_EVERY_NS)
        seat->asked_every = every;
}

/* PRB_SAMPLED_*; only what the mode needs is asked of the kernel. */
static unsigned look(struct prb_member *member, struct prb_seat *seat, uint64_t period)
{
    const struct prb_interpreter *interpreter = interpreter_of(member, seat);
    struct prb_profile_thread *thread = &member->box->threads[seat->thread];
    enum prb_profile_mode mode = member->options->mode;
    unsigned state = 0;
    if (interpreter->gil_holder == seat->tstate)
        state = PRB_SAMPLED_GIL | (interpreter->gc ? PRB_SAMPLED_GC : 0);
    bool wanted =
        mode == PRB_PROFILE_ACTIVE || mode == PRB_PROFILE_EXCEPTION || member->options->states;
    if (!state && may_wait_on(member, seat)) {
        seat->unasked++;
        return PRB_SAMPLED_IDLE | (thread->state & PRB_SAMPLED_WANTS_GIL);
    }
    if (seat->has_task && (wanted || mode == PRB_PROFILE_CPU)) {
        prb_doing_look(&seat->doing, wanted && !state);
        thread->cpu_ns += seat->doing.used_ns;
        choose_next_look(seat, period);
    }
    thread->waits = NULL;
    if (!wanted || state)
        return state;
    if (!seat->has_task || seat->doing.waits)
        state |= PRB_SAMPLED_IDLE;
    if (seat->has_task && seat->doing.waits)
        thread->waits = wait_name(member, seat, interpreter, &state);
    return state;
}

/* ns that the sample counts for; 0: it does not count. */
static uint64_t worth(const struct prb_member *member, const struct prb_seat *seat, unsigned state,
                      const struct prb_moment *moment)
{
    switch (member->options->mode) {
    case PRB_PROFILE_WALL:
        return moment->period;
    case PRB_PROFILE_GIL:
        return state & PRB_SAMPLED_GIL ? moment->period : 0;
    case PRB_PROFILE_CPU:
        return seat->doing.used_ns;
    case PRB_PROFILE_EXCEPTION:
        return !(state & PRB_SAMPLED_IDLE) &&
                       prb_thread_handles_exception(&member->target->runtimes[seat->runtime],
                                                    seat->tstate)
                   ? moment->period
                   : 0;
    default:
        return state & PRB_SAMPLED_IDLE ? 0 : moment->period;
    }
}

static void add_weight(struct prb_member *member, struct prb_seat *seat, uint64_t ns)
{
    struct prb_profile_box *box = member->box;
    if (seat->weight == PRB_NO_ITEM || seat->weight_node != seat->shown) {
        seat->weight = prb_profile_weight(box, seat->thread, seat->shown);
        seat->weight_node = seat->shown;
    }
    if (seat->weight == PRB_NO_ITEM)
        return;
    box->weights[seat->weight].samples++;
    box->weights[seat->weight].ns += ns;
}

static void add_to_stay(struct prb_member *member, struct prb_seat *seat, unsigned state,
                        uint64_t ns, uint64_t now)
{
    if (seat->open && (seat->stay.node != seat->shown || seat->stay.state != state))
        prb_close_stay(member, seat, now);
    if (!seat->open) {
        seat->open = true;
        seat->stay.node = seat->shown;
        seat->stay.state = state;
        seat->stay.start = now;
        seat->stay.samples = seat->stay.ns = 0;
    }
    seat->stay.samples++;
    seat->stay.ns += ns;
}

/* The native frames tell of a thread that runs that it only spins, until a GPU or another rank is
 * done. */
static unsigned look_at_native(struct prb_member *member, struct prb_seat *seat, unsigned state)
{
    struct prb_profile_thread *thread = &member->box->threads[seat->thread];
    const char *waits = NULL;
    prb_native_name(member, seat, &waits);
    thread->node = seat->shown;
    if (!waits)
        return state;
    thread->waits = prb_profile_text(member->box, waits);
    return state | PRB_SAMPLED_IDLE;
}

/* Count samples in which it was not asked and, by the processor time that it used or waited for,
 * ran or was to run: with the stack that it had then.  state: what it does now, which is counted
 * by itself. */
static void catch_up(struct prb_member *member, struct prb_seat *seat, unsigned state,
                     const struct prb_moment *moment)
{
    struct prb_profile_thread *thread = &member->box->threads[seat->thread];
    uint64_t now_ns = state & PRB_SAMPLED_IDLE ? 0 : moment->period;
    seat->owed_ns += seat->doing.used_ns + seat->doing.delayed_ns;
    seat->owed_ns -= now_ns < seat->owed_ns ? now_ns : seat->owed_ns;
    uint64_t ran = seat->owed_ns / moment->period;
    seat->owed_ns %= moment->period;
    ran = ran < seat->unasked ? ran : seat->unasked;
    seat->unasked = 0;
    seat->shown = thread->node;
    if (!ran || !seat->shown)
        return;
    uint64_t span = ran * moment->period;
    prb_close_stay(member, seat, moment->now);
    for (uint64_t i = 0; i < ran; i++) {
        thread->idle_samples -= thread->idle_samples > 0;
        add_weight(member, seat, moment->period);
        if (member->box->timeline.wanted)
            add_to_stay(member, seat, 0, moment->period,
                        moment->now > span ? moment->now - span : 0);
    }
}

void prb_count_seat(struct prb_member *member, struct prb_seat *seat,
                    const struct prb_moment *moment)
{
    struct prb_profile_box *box = member->box;
    unsigned unasked = seat->unasked, state = look(member, seat, moment->period);
    struct prb_profile_thread *thread = &box->threads[seat->thread];
    if (unasked && unasked == seat->unasked)
        catch_up(member, seat, state, moment);
    box->profile.thread_samples++;
    if (!seat->told) {
        box->profile.dropped++;
        thread->dropped++;
        return;
    }
    thread->node = seat->shown = seat->whole;
    thread->seen = box->profile.samples;
    thread->samples++;
    uint64_t ns = seat->node ? worth(member, seat, state, moment) : 0;
    bool kept = ns || (seat->node && member->options->whole_timeline);
    if (kept && member->options->native) {
        unsigned before = state;
        state = look_at_native(member, seat, state);
        ns = state == before ? ns : worth(member, seat, state, moment);
        kept = ns || member->options->whole_timeline;
    }
    thread->state = state;
    thread->gil_samples += !!(state & PRB_SAMPLED_GIL);
    thread->idle_samples += !!(state & PRB_SAMPLED_IDLE);
    if (ns)
        add_weight(member, seat, ns);
    if (!kept) {
        prb_close_stay(member, seat, moment->now);
        return;
    }
    if (box->timeline.wanted)
        add_to_stay(member, seat, state, ns, moment->now);
}
