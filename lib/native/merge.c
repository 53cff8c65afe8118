/*
 * Puts Python frames at their place among native ones, by anchor and not by counting.
 *
 * A run is the Python frames that one call of the evaluator runs.  What ties it to the evaluator's
 * native frame (trait anchor): an address inside that frame (the shim frame, a CFrame), or, up to
 * 3.9, the address of the Python frame, which the evaluator stores in its part of the stack.  Only
 * runs that no anchor places are counted against the evaluators left over between their neighbours;
 * when that fails too, nothing is merged and nothing dropped.
 */
#include <string.h>

#include "native/unwinder.h"

#define NOWHERE SIZE_MAX

struct run {
    const struct prb_raw_thread *thread;
    const struct prb_raw_frame *frames;
    size_t count;
    prb_addr anchor; /* 0: none */
    size_t
        at; /* index of its evaluator's native frame; the count of frames: outside of all of them */
};

struct merge {
    struct prb_unwinder *u;
    struct prb_py *py;
    const struct prb_native_stack *native;
    struct run *runs;
    size_t run_count, python_frames;
    size_t *taken;         /* for each native frame the run that replaces it, or NOWHERE */
    const char *evaluator; /* name of the evaluator among these frames, or NULL */
};

static void release(struct merge *merge)
{
    free(merge->runs);
    free(merge->taken);
}
PRB_DEFINE_AUTO(merge, struct merge, release)

/* ---- runs ---- */

static bool split(struct merge *merge, const struct prb_raw_thread *const *python, size_t count,
                  struct prb_error *err)
{
    size_t cap = 0;
    for (size_t t = 0; t < count; t++) {
        const struct prb_raw_thread *thread = python[t];
        for (size_t f = 0, first = 0; f < thread->frame_count; f++) {
            const struct prb_raw_frame *frame = &thread->frames[f];
            if (!frame->entry && f + 1 < thread->frame_count)
                continue;
            if (!PRB_GROW(merge->runs, merge->run_count, cap))
                return prb_nomem(err);
            merge->runs[merge->run_count++] =
                (struct run){thread, &thread->frames[first], f + 1 - first,
                             frame->entry ? frame->anchor : 0, NOWHERE};
            first = f + 1;
        }
        merge->python_frames += thread->frame_count;
    }
    return true;
}

/* ---- native frames ---- */

static bool in_interpreter(const struct merge *merge, const struct prb_native_frame *frame)
{
    const struct prb_module *own = merge->py->module;
    return frame->module && own &&
           (frame->module == own ||
            (frame->module->start == own->start && strcmp(frame->module->path, own->path) == 0));
}

static bool is_evaluator(const struct merge *merge, size_t i)
{
    const struct prb_native_frame *frame = &merge->native->frames[i];
    return merge->evaluator && frame->symbol && in_interpreter(merge, frame) &&
           prb_symbol_is(frame->symbol, merge->evaluator);
}

/* Old and new interpreters name it differently, and new ones keep a function of the old name. */
static const char *evaluator_name(const struct merge *merge)
{
    for (size_t k = 0; prb_evaluator_symbol(k); k++)
        for (size_t i = 0; i < merge->native->count; i++) {
            const struct prb_native_frame *frame = &merge->native->frames[i];
            if (frame->symbol && in_interpreter(merge, frame) &&
                prb_symbol_is(frame->symbol, prb_evaluator_symbol(k)))
                return prb_evaluator_symbol(k);
        }
    return NULL;
}

/* ---- placing runs ---- */

/* The frame whose part of the stack holds an address, most likely after the one where the last was
 * found. */
static size_t frame_at(const struct merge *merge, prb_addr addr, size_t from)
{
    const struct prb_native_stack *native = merge->native;
    for (size_t k = 0; k < native->count; k++) {
        size_t i = from + k < native->count ? from + k : from + k - native->count;
        if (addr >= native->frames[i].sp && addr < native->frames[i].cfa)
            return i;
    }
    const struct prb_native_frame *last = native->count ? &native->frames[native->count - 1] : NULL;
    /* The walk ended early: what lies further out is outside of all that was seen. */
    if (last && native->broken && addr >= (last->cfa ? last->cfa : last->sp))
        return native->count;
    return NOWHERE;
}

#define FRAME_WORDS_MAX 4096 /* of one native frame, searched for an anchor */

static bool holds_word(const struct merge *merge, size_t i, uint64_t wanted)
{
    const struct prb_native_frame *frame = &merge->native->frames[i];
    size_t words = 0;
    for (prb_addr at = frame->sp; at < frame->cfa && words < FRAME_WORDS_MAX; at += 8, words++) {
        uint64_t word;
        if (!prb_unwinder_word(merge->u, at, &word))
            return false;
        if (word == wanted)
            return true;
    }
    return false;
}

/* Where no name identifies the evaluator: the largest of the interpreter's frames that contain the
 * anchor, before any that contains the next one; the others only passed it on. */
static size_t largest_holder(const struct merge *merge, size_t from, prb_addr anchor, prb_addr next)
{
    size_t best = NOWHERE;
    prb_addr best_size = 0;
    for (size_t i = from; i < merge->native->count; i++) {
        const struct prb_native_frame *frame = &merge->native->frames[i];
        if (!in_interpreter(merge, frame))
            continue;
        if (best != NOWHERE && next && holds_word(merge, i, next))
            break;
        if (frame->cfa - frame->sp > best_size && holds_word(merge, i, anchor)) {
            best = i;
            best_size = frame->cfa - frame->sp;
        }
    }
    return best;
}

/* The outermost evaluators, as many as there are runs of the one thread, each holding its run's
 * anchor: then an inner one left over has not begun its frame yet, or is done with it.  Searching
 * from the inside would take it for its caller's, whose frame it names too. */
static bool place_from_outside(struct merge *merge)
{
    size_t r = merge->run_count;
    for (size_t i = merge->native->count; i-- > 0 && r > 0;)
        if (is_evaluator(merge, i)) {
            const struct run *run = &merge->runs[--r];
            if (run->thread != merge->runs[0].thread || !run->anchor ||
                !holds_word(merge, i, run->anchor))
                return false;
            merge->runs[r].at = i;
        }
    return r == 0;
}

static void place_by_pointer(struct merge *merge)
{
    size_t from = 0;
    if (place_from_outside(merge))
        return;
    for (size_t r = 0; r < merge->run_count; r++)
        merge->runs[r].at = NOWHERE;
    for (size_t r = 0; r < merge->run_count; r++) {
        struct run *run = &merge->runs[r];
        if (r && run->thread != run[-1].thread)
            from = 0;
        if (!run->anchor)
            continue;
        if (merge->evaluator) {
            for (size_t i = from; i < merge->native->count && run->at == NOWHERE; i++)
                if (is_evaluator(merge, i) && holds_word(merge, i, run->anchor))
                    run->at = i;
        } else {
            bool more = r + 1 < merge->run_count && run[1].thread == run->thread;
            run->at = largest_holder(merge, from, run->anchor, more ? run[1].anchor : 0);
        }
        if (run->at != NOWHERE)
            from = run->at + 1;
    }
}

static void place_by_address(struct merge *merge)
{
    for (size_t r = 0, from = 0; r < merge->run_count; r++) {
        struct run *run = &merge->runs[r];
        if (!run->anchor)
            continue;
        run->at = frame_at(merge, run->anchor, from);
        if (run->at < merge->native->count)
            from = run->at;
    }
}

/* Runs first … last of one thread have no place: the evaluators left between their neighbours, if
 * just as many, are theirs. */
static void place_by_count(struct merge *merge, size_t first, size_t last)
{
    const struct run *runs = merge->runs;
    bool begins = first == 0 || runs[first - 1].thread != runs[first].thread;
    bool ends = last + 1 == merge->run_count || runs[last + 1].thread != runs[last].thread;
    size_t from = begins ? 0 : runs[first - 1].at + 1;
    size_t to = ends ? merge->native->count : runs[last + 1].at;
    size_t left = 0;
    for (size_t i = from; i < to; i++)
        left += is_evaluator(merge, i) && merge->taken[i] == NOWHERE;
    if (left == last - first + 1) {
        for (size_t i = from, r = first; i < to; i++)
            if (is_evaluator(merge, i) && merge->taken[i] == NOWHERE)
                merge->runs[r++].at = i;
    } else if (ends && left == 0 && merge->native->broken) {
        for (size_t r = first; r <= last; r++)
            merge->runs[r].at = merge->native->count;
    }
}

static void free_places(struct merge *merge)
{
    for (size_t i = 0; i < merge->native->count; i++)
        merge->taken[i] = NOWHERE;
}

static void take_places(struct merge *merge)
{
    free_places(merge);
    for (size_t r = 0; r < merge->run_count; r++)
        if (merge->runs[r].at < merge->native->count)
            merge->taken[merge->runs[r].at] = r;
}

/* All placed, in order, and no two in one frame. */
static bool is_sure(struct merge *merge)
{
    size_t count = merge->native->count;
    free_places(merge);
    for (size_t r = 0; r < merge->run_count; r++) {
        const struct run *run = &merge->runs[r];
        bool follows = r && run->thread == run[-1].thread;
        if (run->at == NOWHERE || (follows && run->at < run[-1].at))
            return false;
        if (run->at == count)
            continue;
        if (merge->taken[run->at] != NOWHERE)
            return false;
        merge->taken[run->at] = r;
    }
    return true;
}

static bool place(struct merge *merge)
{
    if (PRB_IS(&merge->py->layout, anchor, FRAME_POINTER))
        place_by_pointer(merge);
    else
        place_by_address(merge);
    take_places(merge);
    for (size_t r = 0, end; r < merge->run_count; r = end) {
        for (end = r; end < merge->run_count && merge->runs[end].at == NOWHERE &&
                      merge->runs[end].thread == merge->runs[r].thread;)
            end++;
        if (end > r)
            place_by_count(merge, r, end - 1);
        else
            end++;
    }
    return is_sure(merge);
}

/* ---- rows ---- */

struct rows {
    struct prb_merged_row *items;
    size_t count;
    const struct prb_raw_thread *wanted;
};

/* The runs of the thread's other interpreters only keep their places. */
static void add_python(struct rows *rows, const struct run *run)
{
    if (run->thread != rows->wanted)
        return;
    for (size_t f = 0; f < run->count; f++)
        rows->items[rows->count++] =
            (struct prb_merged_row){.python = &run->frames[f], .thread = run->thread};
}

static void add_native(struct rows *rows, const struct prb_native_frame *frame)
{
    rows->items[rows->count++] = (struct prb_merged_row){.native = frame};
}

/* Machine code that the interpreter made (its JIT, its trampolines for perf): called by the
 * interpreter itself. */
static bool is_made_code(const struct merge *merge, size_t i)
{
    const struct prb_native_frame *frames = merge->native->frames;
    size_t caller = i;
    while (caller < merge->native->count && !frames[caller].module)
        caller++;
    if (caller == i || caller == merge->native->count)
        return false;
    const struct prb_native_frame *frame = &frames[caller];
    return merge->taken[caller] != NOWHERE ||
           (in_interpreter(merge, frame) &&
            (!frame->symbol || prb_is_call_machinery(frame->symbol)));
}

/* Left out of the rows; below_python: a Python run was met further in. */
static bool is_machinery(const struct merge *merge, size_t i, bool below_python)
{
    const struct prb_native_frame *frame = &merge->native->frames[i];
    if (!frame->module)
        return is_made_code(merge, i);
    if (!in_interpreter(merge, frame))
        return false;
    if (!frame->symbol)
        return below_python;
    /* An evaluator that runs no frame that we know is worth showing: it may be a greenlet that was
     * switched out.  The innermost one may only not have begun yet, or be done already. */
    return prb_is_call_machinery(frame->symbol) && !(below_python && is_evaluator(merge, i));
}

static void interleave(struct merge *merge, struct rows *rows)
{
    bool below_python = false;
    for (size_t i = 0; i < merge->native->count; i++) {
        if (merge->taken[i] != NOWHERE) {
            add_python(rows, &merge->runs[merge->taken[i]]);
            below_python = true;
        } else if (!is_machinery(merge, i, below_python)) {
            add_native(rows, &merge->native->frames[i]);
        }
    }
    for (size_t r = 0; r < merge->run_count; r++)
        if (merge->runs[r].at == merge->native->count)
            add_python(rows, &merge->runs[r]);
}

static void both_whole(struct merge *merge, struct rows *rows)
{
    for (size_t i = 0; i < merge->native->count; i++)
        add_native(rows, &merge->native->frames[i]);
    for (size_t r = 0; r < merge->run_count; r++)
        add_python(rows, &merge->runs[r]);
}

bool prb_merge(struct prb_unwinder *u, struct prb_py *py, const struct prb_thread_copy *copy,
               const struct prb_native_stack *native, const struct prb_raw_thread *const *python,
               size_t python_count, struct prb_merged_row **rows_out, size_t *count_out,
               bool *sure_out, struct prb_error *err)
{
    PRB_AUTO(merge) struct merge merge = {.u = u, .py = py, .native = native};
    merge.taken = calloc(native->count + 1, sizeof *merge.taken);
    if (!merge.taken)
        return prb_nomem(err);
    if (!split(&merge, python, python_count, err))
        return false;
    size_t room = native->count + merge.python_frames + 1;
    struct rows rows = {.items = prb_arena_alloc(&u->arena, room * sizeof *rows.items),
                        .wanted = python_count ? python[0] : NULL};
    if (!rows.items)
        return prb_nomem(err);
    merge.evaluator = evaluator_name(&merge);
    u->copy = copy;
    bool sure = place(&merge);
    u->copy = NULL;
    if (sure && merge.run_count)
        interleave(&merge, &rows);
    else
        both_whole(&merge, &rows);
    *rows_out = rows.items;
    *count_out = rows.count;
    *sure_out = sure;
    return true;
}
