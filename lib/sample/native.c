/*
 * Stacks with native frames (member.h).
 *
 * A thread that waits in the kernel is read as it stands, from what /proc says of it, and not again
 * until it has had a turn.  One that runs is stopped for the copy of its registers, its stack bytes
 * and its Python chain, which so are of one moment; it is unwound when it runs again.
 */
#include <stdio.h>
#include <string.h>

#include "sample/member.h"

#define RENEW_NS 1000000000 /* between two readings of the target's maps */
#define WAIT_FRAMES 16      /* innermost frames that are looked at for a spinning wait */

static uint64_t spot_hash(const void *items, uint32_t item)
{
    return prb_hash_words(((const struct prb_member *)items)->spots[item].pc, 0);
}

static bool spot_same(const void *items, uint32_t item, const void *key)
{
    return ((const struct prb_member *)items)->spots[item].pc == *(const prb_addr *)key;
}

static const struct prb_index_kind spot_kind = {spot_hash, spot_same};

bool prb_native_begin(struct prb_member *member, uint64_t now, struct prb_error *err)
{
    struct prb_unwinder *unwinder = prb_target_unwinder(member->target, err);
    if (!unwinder)
        return false;
    if (now >= member->renew_after) {
        prb_unwinder_renew(unwinder);
        member->renew_after = now + RENEW_NS;
    } else {
        prb_unwinder_again(unwinder);
    }
    if (member->spots_of != prb_unwinder_code(unwinder)) {
        member->spots_of = prb_unwinder_code(unwinder);
        prb_index_clear(&member->spot_index);
        member->spot_count = 0;
    }
    return true;
}

/* ---- names ---- */

static uint32_t native_frame(struct prb_profile_box *box, const char *symbol, const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    struct prb_profile_function function = {
        .kind = PRB_FRAME_NATIVE,
        .name = prb_profile_text(box, symbol),
        .filename = prb_profile_text(box, path),
        .short_filename = prb_profile_text(box, slash ? slash + 1 : path),
    };
    function.qualname = function.name;
    return prb_profile_frame(box, prb_profile_function(box, &function), 0);
}

static const struct prb_spot *find_spot(const struct prb_member *member, prb_addr pc)
{
    uint32_t item =
        prb_index_find(&member->spot_index, &spot_kind, member, prb_hash_words(pc, 0), &pc);
    return item == PRB_NO_ITEM ? NULL : &member->spots[item];
}

static void keep_spot(struct prb_member *member, const struct prb_native_frame *frame)
{
    if (find_spot(member, frame->pc))
        return;
    if (!PRB_GROW(member->spots, member->spot_count, member->spot_cap)) {
        member->box->failed = true;
        return;
    }
    member->spots[member->spot_count] = (struct prb_spot){
        .pc = frame->pc,
        .symbol = prb_profile_text(member->box, frame->symbol),
        .frame = native_frame(member->box, frame->symbol ? frame->symbol : "(no symbol)",
                              frame->module ? frame->module->path : NULL),
    };
    if (prb_index_add(&member->spot_index, &spot_kind, member, prb_hash_words(frame->pc, 0),
                      (uint32_t)member->spot_count))
        member->spot_count++;
}

/* Symbols of all frames: of those that were met before as they were then. */
static void name_native(struct prb_member *member, struct prb_native_stack *stack)
{
    size_t fresh = 0;
    PRB_AUTO_FREE struct prb_native_frame *frames = malloc((stack->count + 1) * sizeof *frames);
    for (size_t i = 0; frames && i < stack->count; i++)
        if (!find_spot(member, stack->frames[i].pc))
            frames[fresh++] = stack->frames[i];
    struct prb_native_stack unnamed = {.frames = frames, .count = fresh};
    if (fresh)
        prb_unwinder_name(member->target->unwinder, &unnamed, 1, false);
    for (size_t i = 0; i < fresh; i++)
        keep_spot(member, &frames[i]);
    for (size_t i = 0; i < stack->count; i++) {
        const struct prb_spot *spot = find_spot(member, stack->frames[i].pc);
        stack->frames[i].symbol = spot ? spot->symbol : NULL;
    }
}

static const struct {
    const char *symbol, *waits;
} spins[] = {
#define WAIT(symbol, waits) {symbol, waits},
#include "sample/waits.def"
#undef WAIT
};

static const char *spinning(const struct prb_native_stack *stack)
{
    for (size_t i = 0; i < stack->count && i < WAIT_FRAMES; i++)
        for (size_t k = 0; stack->frames[i].symbol && k < sizeof spins / sizeof *spins; k++)
            if (strncmp(stack->frames[i].symbol, spins[k].symbol, strlen(spins[k].symbol)) == 0)
                return spins[k].waits;
    return NULL;
}

/* On top of the frames that spin: what they do it for. */
static uint32_t waiting_frame(struct prb_profile_box *box, const char *waits)
{
    char text[64];
    snprintf(text, sizeof text, "(waits for %s)", waits);
    return native_frame(box, text, NULL);
}

/* ---- one moment ---- */

struct meeting {
    struct prb_sampler *sampler;
    size_t thread;
    bool read; /* the chain was read while the thread was stopped */
};

static void read_chain(void *context)
{
    struct meeting *meeting = context;
    meeting->read = prb_sampler_again(meeting->sampler, meeting->thread, NULL);
}

/* ---- rows ---- */

static bool add_rows(struct prb_member *member, struct prb_seat *seat,
                     const struct prb_merged_row *rows, size_t count, uint32_t *node_out)
{
    struct prb_py *py = member->target->runtimes[seat->runtime].py;
    struct prb_view *codes = member->naming[seat->runtime].codes;
    uint32_t node = 0;
    for (size_t i = count; i-- > 0;) {
        if (rows[i].native) {
            const struct prb_spot *spot = find_spot(member, rows[i].native->pc);
            if (spot)
                node = prb_profile_node(member->box, node, spot->frame);
            continue;
        }
        bool fresh;
        const struct prb_code_object *code =
            rows[i].python->code ? prb_code_watched(py, codes, rows[i].python->code, &fresh, NULL)
                                 : NULL;
        if (rows[i].python->code && !code)
            return false;
        node = prb_async_add(member, &seat->between, rows[i].python->frame, node);
        if (code)
            node = prb_profile_node(
                member->box, node,
                prb_name_frame(member, seat->runtime, code, rows[i].python->instruction));
    }
    *node_out = node;
    return true;
}

static bool merge(struct prb_member *member, struct prb_seat *seat,
                  const struct prb_thread_copy *copy, const struct prb_native_stack *stack,
                  uint32_t *node_out)
{
    struct prb_runtime *runtime = &member->target->runtimes[seat->runtime];
    const struct prb_raw_thread *raw = &prb_sampler_last(runtime->sampler)->threads[seat->raw];
    const struct prb_raw_thread *list[] = {raw};
    struct prb_merged_row *rows = NULL;
    size_t count = 0;
    bool sure = true;
    if (!prb_merge(member->target->unwinder, runtime->py, copy, stack, list, 1, &rows, &count,
                   &sure, NULL) ||
        !add_rows(member, seat, rows, count, node_out))
        return false;
    if (!sure)
        member->box->profile.warning = "some native frames could not be placed among the Python "
                                       "ones: they stand within them";
    return true;
}

/* It had no turn since its native frames were taken. */
static bool stands_still(const struct prb_seat *seat)
{
    return seat->native_kept && seat->native_of == seat->node && seat->doing.known &&
           seat->doing.waits && seat->doing.turns == seat->native_turns;
}

static bool take(struct prb_member *member, struct prb_seat *seat, const char **waits_out)
{
    struct prb_profile *profile = &member->box->profile;
    struct prb_runtime *runtime = &member->target->runtimes[seat->runtime];
    struct meeting meeting = {runtime->sampler, seat->raw, false};
    struct prb_native_stack stack = {0};
    uint32_t node = 0;
    PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy = {0};
    if (!prb_thread_unwind(member->target->unwinder, member->target->proc, seat->doing.tid, true,
                           read_chain, &meeting, &copy, &stack, NULL))
        return false;
    if (copy.stopped > profile->longest_stop)
        profile->longest_stop = copy.stopped;
    bool one_moment = meeting.read || prb_sampler_stood(runtime->sampler, seat->raw, true);
    name_native(member, &stack);
    *waits_out = spinning(&stack);
    if (!merge(member, seat, &copy, &stack, &node))
        return false;
    if (*waits_out)
        node = prb_profile_node(member->box, node, waiting_frame(member->box, *waits_out));
    profile->moved += !one_moment;
    seat->native_kept = one_moment && copy.stopped == 0;
    seat->native_of = seat->node;
    seat->native_turns = seat->doing.turns;
    seat->native_node = node;
    return true;
}

bool prb_native_name(struct prb_member *member, struct prb_seat *seat, const char **waits_out)
{
    *waits_out = NULL;
    if (!seat->has_task)
        return false;
    if (!stands_still(seat) && !take(member, seat, waits_out)) {
        member->box->profile.moved++;
        return false;
    }
    seat->shown = seat->native_node;
    return true;
}
