/*
 * Frame chains, by the traits of a layout: frame objects (up to 3.10), or interpreter frames on the
 * data stack (3.11+). This is the hot path of every sample: each frame is one look-up in the view.
 */
#include "py/walk.h"

#include <string.h>

void prb_walk_deinit(struct prb_walk *walk)
{
    free(walk->frames);
    *walk = (struct prb_walk){0};
}

bool prb_view_field(struct prb_view *view, const struct prb_layout *layout, prb_addr addr,
                    enum prb_field field, uint64_t *out)
{
    int32_t offset = layout->offset[field];
    unsigned width = prb_field_width(field);
    if (offset == PRB_ABSENT || !width)
        return false;
    const void *bytes = prb_view_get(view, addr + (prb_addr)(int64_t)offset, width);
    if (!bytes)
        return false;
    *out = 0;
    memcpy(out, bytes, width);
    return true;
}

/* ---- one frame ---- */

/* What is needed of a frame, and where its header's bytes begin and end. */
struct shape {
    const struct prb_layout *layout;
    int32_t low, high; /* [low, high) from the frame's address */
    uint64_t tag_mask;
    enum prb_instr instr;
};

static void widen(struct shape *shape, enum prb_field field, int width)
{
    int32_t offset = shape->layout->offset[field];
    if (offset == PRB_ABSENT)
        return;
    if (shape->high == 0 || offset < shape->low)
        shape->low = offset;
    if (offset + width > shape->high)
        shape->high = offset + width;
}

static struct shape shape_of(const struct prb_layout *layout)
{
    struct shape shape = {.layout = layout};
    shape.instr = (enum prb_instr)layout->trait[PRB_TRAIT_instr];
    shape.tag_mask =
        PRB_IS(layout, reference, TAGGED) ? (uint64_t)PRB_NUM(layout, reference_mask) : 0;
    bool word = shape.instr == PRB_instr_PREV_INSTR || shape.instr == PRB_instr_INSTR_PTR;
    widen(&shape, PRB_F_frame_previous, 8);
    widen(&shape, PRB_F_frame_code, 8);
    widen(&shape, PRB_F_frame_instr, word ? 8 : 4);
    widen(&shape, PRB_F_frame_owner, 1);
    widen(&shape, PRB_F_frame_is_entry, 1);
    widen(&shape, PRB_F_frame_tlbc_index, 4);
    return shape;
}

static uint64_t word_at(const struct shape *shape, const uint8_t *head, enum prb_field field,
                        unsigned width)
{
    uint64_t value = 0;
    int32_t offset = shape->layout->offset[field];
    if (offset != PRB_ABSENT)
        memcpy(&value, head + (offset - shape->low), width);
    return value;
}

/* Free-threaded builds run thread-local copies of the bytecode: co_tlbc → {size, entries[]}, entry
 * 0 the main one. */
static prb_addr bytecode_copy(struct prb_view *view, const struct prb_layout *layout, prb_addr code,
                              uint32_t index)
{
    enum { TLBC_MAX = 65536 };
    uint64_t array = 0, size = 0, copy = 0;
    if (index == 0 || index >= TLBC_MAX ||
        !prb_view_field(view, layout, code, PRB_F_code_tlbc, &array) || !array ||
        !prb_view_u64(view, array, &size) || index >= size ||
        !prb_view_u64(view, array + 8 + 8 * (prb_addr)index, &copy))
        return 0;
    return copy;
}

/* Offset of the current instruction, bytes from the start of the code; -1: not begun, or unknown.
 */
static int32_t instruction_of(const struct shape *shape, struct prb_view *view, const uint8_t *head,
                              prb_addr code)
{
    if (shape->instr == PRB_instr_LASTI_BYTES)
        return (int32_t)word_at(shape, head, PRB_F_frame_instr, 4);
    if (shape->instr == PRB_instr_LASTI_UNITS) {
        int32_t units = (int32_t)word_at(shape, head, PRB_F_frame_instr, 4);
        return units < 0 || units > INT32_MAX / 2 ? -1 : units * 2;
    }
    prb_addr start = code + (prb_addr)PRB_OFF(shape->layout, code, bytecode);
    uint64_t index = word_at(shape, head, PRB_F_frame_tlbc_index, 4);
    if (index) {
        prb_addr copy = bytecode_copy(view, shape->layout, code, (uint32_t)index);
        start = copy ? copy : start;
    }
    uint64_t at = word_at(shape, head, PRB_F_frame_instr, 8);
    return at < start || at - start > INT32_MAX ? -1 : (int32_t)(at - start);
}

/* ---- the chain ---- */

struct chain {
    struct shape shape;
    struct prb_view *view;
    struct prb_walk *walk;
};

static void end_run(struct chain *chain, prb_addr shim)
{
    if (!chain->walk->count)
        return;
    struct prb_raw_frame *last = &chain->walk->frames[chain->walk->count - 1];
    const struct prb_layout *layout = chain->shape.layout;
    if (last->entry) /* the base frame of 3.15, below the outermost shim and owned alike */
        return;
    last->entry = true;
    if (PRB_IS(layout, anchor, SHIM_ADDRESS)) {
        last->anchor = shim;
    } else if (PRB_IS(layout, anchor, FRAME_POINTER)) {
        last->anchor = last->frame;
    }
}

static bool breaks(struct prb_walk *walk, prb_addr at, const char *why)
{
    walk->broken = (struct prb_broken){.why = why, .at = at};
    return false;
}

bool prb_broken_error(const struct prb_broken *broken, struct prb_error *err)
{
    return prb_fail_addr(err, broken->at, "%s at %#llx", broken->why,
                         (unsigned long long)broken->at);
}

/* Take one frame; *next is the one that called it (0: the last).  False: the walk ends here. */
static bool take(struct chain *chain, prb_addr frame, prb_addr *next)
{
    const struct shape *shape = &chain->shape;
    struct prb_walk *walk = chain->walk;
    const uint8_t *head = prb_view_get(chain->view, frame + (prb_addr)(int64_t)shape->low,
                                       (size_t)(shape->high - shape->low));
    if (!head)
        return breaks(walk, frame, "unreadable frame");
    const struct prb_layout *layout = shape->layout;
    *next = word_at(shape, head, PRB_F_frame_previous, 8);
    prb_addr code = word_at(shape, head, PRB_F_frame_code, 8) & ~shape->tag_mask;
    int owner = (int)word_at(shape, head, PRB_F_frame_owner, 1);
    bool has_owner = PRB_HAS(layout, frame, owner);
    if (has_owner && owner == PRB_NUM(layout, owner_interpreter)) {
        end_run(chain, frame);
        return true;
    }
    if (has_owner && owner == PRB_NUM(layout, owner_cstack))
        return true; /* made by C code around a call: no Python of its own */
    if (!code)
        return breaks(walk, frame, "frame without code");
    if (!PRB_GROW(walk->frames, walk->count, walk->cap))
        return breaks(walk, frame, "out of memory");
    bool flag = word_at(shape, head, PRB_F_frame_is_entry, 1) != 0;
    walk->frames[walk->count++] = (struct prb_raw_frame){
        .frame = frame,
        .code = code,
        .owner = (uint8_t)owner,
        .instruction = instruction_of(shape, chain->view, head, code),
    };
    if (PRB_IS(layout, entry, EVERY_FRAME) || (PRB_IS(layout, entry, IS_ENTRY) && flag))
        end_run(chain, 0);
    return true;
}

static void follow(struct chain *chain, prb_addr frame, size_t limit)
{
    struct prb_walk *walk = chain->walk;
    prb_addr slow = frame; /* walks at half the speed: met again, the chain loops */
    for (size_t steps = 0; frame; steps++) {
        prb_addr next = 0;
        if (steps >= limit) {
            breaks(walk, frame, "more frames than the limit");
            walk->broken.cut = true;
            return;
        }
        if (!take(chain, frame, &next))
            return;
        if (next == frame || (steps && next == slow)) {
            breaks(walk, frame, "frames that loop");
            return;
        }
        if ((steps & (steps + 1)) == 0)
            slow = next; /* Brent: move the marker at powers of two */
        frame = next;
    }
}

static uint64_t head_word(const struct prb_layout *layout, const uint8_t *head, int32_t low,
                          enum prb_field field)
{
    uint64_t value = 0;
    int32_t offset = layout->offset[field];
    if (offset != PRB_ABSENT)
        memcpy(&value, head + (offset - low), prb_field_width(field));
    return value;
}

static enum prb_field chain_field(const struct prb_layout *layout)
{
    return PRB_IS(layout, frame_chain, CFRAME) ? PRB_F_thread_cframe : PRB_F_thread_frame;
}

/* Where the words of a thread state lie that make its head: [low, high) from its address. */
static void head_span(const struct prb_layout *layout, int32_t *low, int32_t *high)
{
    const enum prb_field fields[] = {
        PRB_F_thread_next,      PRB_F_thread_interp,           chain_field(layout),
        PRB_F_thread_thread_id, PRB_F_thread_native_thread_id,
    };
    *low = INT32_MAX;
    *high = 0;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int32_t offset = layout->offset[fields[i]];
        if (offset == PRB_ABSENT)
            continue;
        *low = offset < *low ? offset : *low;
        *high = offset + 8 > *high ? offset + 8 : *high;
    }
}

bool prb_walk_head(const struct prb_layout *layout, struct prb_view *view, prb_addr tstate,
                   struct prb_thread_head *out)
{
    int32_t low, high;
    head_span(layout, &low, &high);
    const uint8_t *head =
        low < high ? prb_view_get(view, tstate + (prb_addr)(int64_t)low, (size_t)(high - low))
                   : NULL;
    if (!head)
        return false;
    *out = (struct prb_thread_head){
        .next = head_word(layout, head, low, PRB_F_thread_next),
        .interp = head_word(layout, head, low, PRB_F_thread_interp),
        .chain = head_word(layout, head, low, chain_field(layout)),
        .thread_id = head_word(layout, head, low, PRB_F_thread_thread_id),
        .native_id = head_word(layout, head, low, PRB_F_thread_native_thread_id),
    };
    return true;
}

void prb_walk_prefetch(const struct prb_layout *layout, struct prb_view *view,
                       struct prb_view *heads, prb_addr tstate, const struct prb_thread_head *head)
{
    enum { CFRAME_BYTES = 32, DATA_BYTES = 4096 };
    uint64_t chunk = 0, top = 0;
    int32_t low, high;
    head_span(layout, &low, &high);
    if (low < high)
        prb_view_prefetch(view, tstate + (prb_addr)(int64_t)low, (size_t)(high - low));
    if (PRB_IS(layout, frame_chain, CFRAME))
        prb_view_prefetch(view, head->chain, CFRAME_BYTES);
    if (!prb_view_field(heads, layout, tstate, PRB_F_thread_datastack_chunk, &chunk) ||
        !prb_view_field(heads, layout, tstate, PRB_F_thread_datastack_top, &top) || top <= chunk)
        return;
    uint64_t used = top - chunk;
    prb_addr from = used > DATA_BYTES ? top - DATA_BYTES : chunk;
    prb_view_prefetch(view, from, (size_t)(top - from));
}

static void begin(struct prb_walk *walk)
{
    walk->count = 0;
    walk->broken = (struct prb_broken){0};
}

/* Calls of the evaluator by their CFrames, the innermost first, but for the one in the thread state
 * itself, which ends the chain (3.10 leaves its previous unset). */
static size_t count_cframes(struct chain *chain, prb_addr tstate, prb_addr cframe)
{
    const struct prb_layout *layout = chain->shape.layout;
    prb_addr end =
        tstate + (prb_addr)(PRB_HAS(layout, thread, size) ? PRB_OFF(layout, thread, size) : 0);
    uint64_t previous = 0;
    size_t count = 0;
    while (count < PRB_FRAMES_MAX && cframe && (cframe < tstate || cframe >= end) &&
           prb_view_field(chain->view, layout, cframe, PRB_F_cframe_previous, &previous)) {
        cframe = previous;
        count++;
    }
    return count;
}

/* Paired from the outside: the innermost CFrame may belong to a call that has no frame yet, or none
 * any more. */
static void anchor_by_cframes(struct chain *chain, prb_addr tstate, prb_addr cframe)
{
    struct prb_walk *walk = chain->walk;
    size_t cframes = count_cframes(chain, tstate, cframe), entries = 0;
    for (size_t i = 0; i < walk->count; i++)
        entries += walk->frames[i].entry;
    uint64_t previous = 0;
    for (; cframes > entries; cframes--, cframe = previous)
        if (!prb_view_field(chain->view, chain->shape.layout, cframe, PRB_F_cframe_previous,
                            &previous))
            return;
    for (size_t i = 0; i < walk->count && cframes; i++) {
        if (!walk->frames[i].entry || entries-- > cframes)
            continue;
        walk->frames[i].anchor = cframe;
        if (!prb_view_field(chain->view, chain->shape.layout, cframe, PRB_F_cframe_previous,
                            &previous))
            return;
        cframe = previous;
        cframes--;
    }
}

void prb_walk_thread(struct prb_py *py, struct prb_view *view, prb_addr tstate, bool anchors,
                     struct prb_walk *walk)
{
    const struct prb_layout *layout = &py->layout;
    struct chain chain = {.shape = shape_of(layout), .view = view, .walk = walk};
    struct prb_thread_head head;
    uint64_t frame = 0, cframe = 0;
    begin(walk);
    bool ok = prb_walk_head(layout, view, tstate, &head);
    if (ok && PRB_IS(layout, frame_chain, CFRAME)) {
        cframe = head.chain;
        ok = cframe && prb_view_field(view, layout, cframe, PRB_F_cframe_current_frame, &frame);
    } else if (ok) {
        frame = head.chain;
        if (anchors && PRB_IS(layout, anchor, CFRAMES))
            ok = prb_view_field(view, layout, tstate, PRB_F_thread_cframe, &cframe);
    }
    if (!ok) {
        breaks(walk, tstate, "unreadable thread state");
        return;
    }
    follow(&chain, frame, py->frames_max ? py->frames_max : PRB_FRAMES_MAX);
    if (anchors && PRB_IS(layout, anchor, CFRAMES))
        anchor_by_cframes(&chain, tstate, cframe);
}

bool prb_walk_one(struct prb_py *py, struct prb_view *view, prb_addr addr,
                  struct prb_raw_frame *out, struct prb_error *err)
{
    struct prb_walk walk = {0};
    struct chain chain = {.shape = shape_of(&py->layout), .view = view, .walk = &walk};
    prb_addr next = 0;
    bool good = take(&chain, addr, &next) && walk.count == 1;
    if (good)
        *out = walk.frames[0];
    else if (walk.broken.why)
        prb_broken_error(&walk.broken, err);
    prb_walk_deinit(&walk);
    return good;
}

bool prb_walk_fails(const struct prb_walk *walk) { return walk->broken.why && !walk->broken.cut; }

bool prb_walk_equal(const struct prb_walk *a, const struct prb_walk *b)
{
    if (a->count != b->count || prb_walk_fails(a) || prb_walk_fails(b))
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct prb_raw_frame *x = &a->frames[i], *y = &b->frames[i];
        if (x->frame != y->frame || x->code != y->code ||
            (i > 0 && x->instruction != y->instruction))
            return false;
    }
    return true;
}
