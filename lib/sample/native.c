/*
 * Stacks with native frames (process.h).
 *
 * A thread that waits in the kernel is read without a stop, from what /proc says of it, and not
 * again until it has been on a CPU.  One that runs is stopped while its registers, stack bytes and
 * Python chain are copied, so that they are of one moment; it is unwound when it runs again.
 */
#include <stdio.h>
#include <string.h>

#include "sample/process.h"

#define RENEW_NS 1000000000 /* between two readings of the target's maps */
#define WAIT_FRAMES 16      /* innermost frames that are searched for a spinning wait */

static uint64_t pc_hash(const void *items, uint32_t item)
{
    return prb_hash_words(((const struct prb_sampled_process *)items)->pcs[item].pc, 0);
}

static bool pc_same(const void *items, uint32_t item, const void *key)
{
    return ((const struct prb_sampled_process *)items)->pcs[item].pc == *(const prb_addr *)key;
}

static const struct prb_index_kind pc_kind = {pc_hash, pc_same};

bool prb_native_begin(struct prb_sampled_process *process, uint64_t now, struct prb_error *err)
{
    struct prb_unwinder *unwinder = prb_target_unwinder(process->target, err);
    if (!unwinder)
        return false;
    if (now >= process->renew_after) {
        prb_unwinder_forget_all(unwinder);
        process->renew_after = now + RENEW_NS;
    } else {
        prb_unwinder_forget_memory(unwinder);
    }
    if (process->pcs_of != prb_unwinder_code(unwinder)) {
        process->pcs_of = prb_unwinder_code(unwinder);
        prb_index_clear(&process->pc_index);
        process->pc_count = 0;
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

static const struct prb_named_pc *find_pc(const struct prb_sampled_process *process, prb_addr pc)
{
    uint32_t item =
        prb_index_find(&process->pc_index, &pc_kind, process, prb_hash_words(pc, 0), &pc);
    return item == PRB_NO_ITEM ? NULL : &process->pcs[item];
}

static void save_pc(struct prb_sampled_process *process, const struct prb_native_frame *frame)
{
    if (find_pc(process, frame->pc))
        return;
    if (!PRB_GROW(process->pcs, process->pc_count, process->pc_cap)) {
        process->box->failed = true;
        return;
    }
    process->pcs[process->pc_count] = (struct prb_named_pc){
        .pc = frame->pc,
        .symbol = prb_profile_text(process->box, frame->symbol),
        .frame = native_frame(process->box, frame->symbol ? frame->symbol : "(no symbol)",
                              frame->module ? frame->module->path : NULL),
    };
    if (prb_index_add(&process->pc_index, &pc_kind, process, prb_hash_words(frame->pc, 0),
                      (uint32_t)process->pc_count))
        process->pc_count++;
}

/* Symbols of all frames; those that were named before are not looked up again. */
static void name_native(struct prb_sampled_process *process, struct prb_native_stack *stack)
{
    size_t fresh = 0;
    PRB_AUTO_FREE struct prb_native_frame *frames = malloc((stack->count + 1) * sizeof *frames);
    for (size_t i = 0; frames && i < stack->count; i++)
        if (!find_pc(process, stack->frames[i].pc))
            frames[fresh++] = stack->frames[i];
    struct prb_native_stack unnamed = {.frames = frames, .count = fresh};
    if (fresh)
        prb_unwinder_name(process->target->unwinder, &unnamed, 1, false);
    for (size_t i = 0; i < fresh; i++)
        save_pc(process, &frames[i]);
    for (size_t i = 0; i < stack->count; i++) {
        const struct prb_named_pc *spot = find_pc(process, stack->frames[i].pc);
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

/* On top of the frames that spin: what they wait for. */
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
    meeting->read = prb_sampler_reread(meeting->sampler, meeting->thread, NULL);
}

/* ---- rows ---- */

/* A stack without the native frames below its outermost Python frame: with those of the thread's
 * other samples, so that it does not stand beside them. */
static uint32_t on_root(struct prb_sampled_process *process,
                        const struct prb_sampled_thread *thread, uint32_t node)
{
    struct prb_profile_box *box = process->box;
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    uint32_t outermost = 0, on = thread->native_root;
    for (uint32_t at = node; at && on; at = box->nodes[at].parent) {
        prb_buf_add(&path, &box->nodes[at].frame, sizeof outermost);
        outermost = box->nodes[at].frame;
    }
    if (!path.len || path.failed || box->frames[outermost].function != thread->native_root_function)
        return node;
    for (size_t i = path.len / sizeof outermost; i-- > 0;) {
        uint32_t frame;
        memcpy(&frame, path.data + i * sizeof frame, sizeof frame);
        on = prb_profile_node(box, on, frame);
    }
    return on;
}

static bool add_rows(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                     const struct prb_merged_row *rows, size_t count, uint32_t *node_out)
{
    struct prb_py *py = process->target->runtimes[thread->runtime].py;
    struct prb_view *codes = process->names[thread->runtime].codes;
    uint32_t node = 0;
    bool led = count && rows[count - 1].native, begun = false;
    for (size_t i = count; i-- > 0;) {
        if (rows[i].native) {
            const struct prb_named_pc *spot = find_pc(process, rows[i].native->pc);
            if (spot)
                node = prb_profile_node(process->box, node, spot->frame);
            continue;
        }
        bool fresh;
        const struct prb_code_object *code =
            rows[i].python->code ? prb_code_watched(py, codes, rows[i].python->code, &fresh, NULL)
                                 : NULL;
        if (rows[i].python->code && !code)
            return false;
        uint32_t root = node;
        node = prb_async_add(process, &thread->task_rows, rows[i].python->frame, node);
        if (!code)
            continue;
        uint32_t frame =
            prb_name_frame(process, thread->runtime, code, rows[i].python->instruction);
        if (led && !begun) {
            thread->native_root = root;
            thread->native_root_function = process->box->frames[frame].function;
        }
        begun = true;
        node = prb_profile_node(process->box, node, frame);
    }
    *node_out = led ? node : on_root(process, thread, node);
    return true;
}

static bool merge(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                  const struct prb_thread_copy *copy, const struct prb_native_stack *stack,
                  uint32_t *node_out)
{
    struct prb_runtime *runtime = &process->target->runtimes[thread->runtime];
    const struct prb_raw_thread *raw = &prb_sampler_last(runtime->sampler)->threads[thread->raw];
    const struct prb_raw_thread *list[] = {raw};
    struct prb_merged_row *rows = NULL;
    size_t count = 0;
    bool sure = true;
    if (!prb_merge(process->target->unwinder, runtime->py, copy, stack, list, 1, &rows, &count,
                   &sure, NULL) ||
        !add_rows(process, thread, rows, count, node_out))
        return false;
    if (!sure)
        process->box->profile.warning = "some native frames could not be placed among the Python "
                                        "ones: they stand within them";
    return true;
}

/* It has not been on a CPU since its native frames were taken. */
static bool stands_still(const struct prb_sampled_thread *thread)
{
    return thread->native_known && thread->native_of == thread->node && thread->activity.known &&
           thread->activity.waits && thread->activity.turns == thread->native_turns;
}

static bool take(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                 const char **waits_out)
{
    struct prb_profile *profile = &process->box->profile;
    struct prb_runtime *runtime = &process->target->runtimes[thread->runtime];
    struct meeting meeting = {runtime->sampler, thread->raw, false};
    struct prb_native_stack stack = {0};
    uint32_t node = 0;
    PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy = {0};
    if (!prb_thread_unwind(process->target->unwinder, process->target->proc, thread->activity.tid,
                           true, read_chain, &meeting, &copy, &stack, NULL))
        return false;
    if (copy.stopped > profile->longest_stop)
        profile->longest_stop = copy.stopped;
    bool one_moment = meeting.read || prb_sampler_unchanged(runtime->sampler, thread->raw, true);
    name_native(process, &stack);
    *waits_out = spinning(&stack);
    if (!merge(process, thread, &copy, &stack, &node))
        return false;
    if (*waits_out)
        node = prb_profile_node(process->box, node, waiting_frame(process->box, *waits_out));
    profile->moved += !one_moment;
    thread->native_known = one_moment && copy.stopped == 0;
    thread->native_of = thread->node;
    thread->native_turns = thread->activity.turns;
    thread->native_node = node;
    return true;
}

bool prb_native_name(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                     const char **waits_out)
{
    *waits_out = NULL;
    bool good = thread->has_task && (stands_still(thread) || take(process, thread, waits_out));
    process->box->profile.moved += thread->has_task && !good;
    if (!good) {
        thread->counted_node = on_root(process, thread, thread->counted_node);
        return false;
    }
    thread->counted_node = thread->native_node;
    return true;
}
