/*
 * Which interpreters and threads there are: their lists, and which threads cannot have moved since
 * the last sample.
 */
#include "py/sampler_threads.h"

#include <stdlib.h>

/* ---- interpreters ---- */

static bool list_word(struct prb_sampler *sampler, prb_addr base, enum prb_field field,
                      uint64_t *out)
{
    return prb_view_field(sampler->lists, &sampler->py->layout, base, field, out);
}

/* The interpreter's pointer to its GIL, which it has all its life. */
static prb_addr gil_of(struct prb_sampler *sampler, const struct prb_interpreter *interp)
{
    uint64_t word = 0;
    for (size_t i = 0; i < sampler->note_count; i++)
        if (sampler->notes[i].interp == interp->addr && sampler->notes[i].id == interp->id)
            return sampler->notes[i].gil;
    return list_word(sampler, interp->addr, PRB_F_interp_gil, &word) ? word : 0;
}

static void read_gil(struct prb_sampler *sampler, struct prb_interpreter *interp)
{
    struct prb_py *py = sampler->py;
    const struct prb_layout *layout = &py->layout;
    uint64_t word = 0, locked = 0;
    if (PRB_IS(layout, gil, STATIC)) {
        if (py->tstate_current && prb_view_u64(sampler->lists, py->tstate_current, &word))
            interp->gil_holder = word;
        interp->gil = py->gil_static;
        return;
    }
    if (PRB_IS(layout, gil, RUNTIME))
        interp->gil = py->runtime + (prb_addr)PRB_OFF(layout, runtime, gil);
    else if (PRB_IS(layout, gil, INTERPRETER))
        interp->gil = gil_of(sampler, interp);
    if (interp->gil && list_word(sampler, interp->gil, PRB_F_gil_locked, &locked) &&
        (int32_t)locked > 0 && list_word(sampler, interp->gil, PRB_F_gil_last_holder, &word))
        interp->gil_holder = word;
}

static bool add_interpreter(struct prb_sampler *sampler, prb_addr addr, struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    struct prb_py *py = sampler->py;
    if (!PRB_GROW(result->interpreters, result->interpreter_count, sampler->interpreter_cap))
        return prb_nomem(err);
    struct prb_interpreter *interp = &result->interpreters[result->interpreter_count];
    *interp = (struct prb_interpreter){.addr = addr};
    uint64_t value = 0;
    if (PRB_HAS(&py->layout, interp, id) && list_word(sampler, addr, PRB_F_interp_id, &value))
        interp->id = (int64_t)value;
    value = 0;
    if (PRB_HAS(&py->layout, interp, gc_collecting))
        list_word(sampler, addr, PRB_F_interp_gc_collecting, &value);
    else if (PRB_HAS(&py->layout, runtime, gc_collecting))
        list_word(sampler, py->runtime, PRB_F_runtime_gc_collecting, &value);
    interp->gc = (uint32_t)value != 0;
    read_gil(sampler, interp);
    result->interpreter_count++;
    return true;
}

static int by_id(const void *a, const void *b)
{
    const struct prb_interpreter *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static bool list_interpreters(struct prb_sampler *sampler, struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    result->interpreter_count = 0;
    uint64_t interp = 0;
    if (!prb_view_u64(sampler->lists, sampler->py->interpreters, &interp))
        return prb_fail_addr(err, sampler->py->interpreters, "the interpreter list cannot be read");
    while (interp) {
        if (result->interpreter_count >= PRB_INTERPRETERS_MAX)
            return prb_fail(err, PRB_CORRUPT, "more than %d interpreters", PRB_INTERPRETERS_MAX);
        if (!add_interpreter(sampler, interp, err))
            return false;
        uint64_t next = 0;
        if (!list_word(sampler, interp, PRB_F_interp_next, &next))
            return prb_fail_addr(err, interp, "interpreter state cannot be read");
        interp = next;
    }
    qsort(result->interpreters, result->interpreter_count, sizeof *result->interpreters, by_id);
    return true;
}

static bool add_thread(struct prb_sampler *sampler, size_t interpreter,
                       struct prb_sampler_slot *slot, struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    if (!PRB_GROW(result->threads, result->thread_count, sampler->thread_cap) ||
        !PRB_GROW(sampler->slot_of_thread, result->thread_count, sampler->slot_cap))
        return prb_nomem(err);
    struct prb_raw_thread *thread = &result->threads[result->thread_count];
    *thread = (struct prb_raw_thread){.tstate = slot->tstate, .interpreter = interpreter};
    sampler->slot_of_thread[result->thread_count++] = slot;
    return true;
}

/* Thread states lie side by side, and a page has several: new ones are met in whole pages, of this
 * walk over the list, and what their own views need is announced to these. */
#define HEADS_BYTES 16384

static bool meet(struct prb_sampler *sampler, struct prb_sampler_slot *slot)
{
    const struct prb_layout *layout = &sampler->py->layout;
    if (prb_view_bytes(sampler->heads) >= HEADS_BYTES)
        prb_view_clear(sampler->heads);
    if (!prb_walk_head(layout, sampler->heads, slot->tstate, &slot->head))
        return false;
    prb_walk_prefetch(layout, slot->view, sampler->heads, slot->tstate, &slot->head);
    return true;
}

static bool read_head(struct prb_sampler *sampler, struct prb_sampler_slot *slot)
{
    return slot->unchanged || (slot->cold ? meet(sampler, slot)
                                          : prb_walk_head(&sampler->py->layout, slot->view,
                                                          slot->tstate, &slot->head));
}

/* A thread state's place in the list; false when it is not of this interpreter, or was seen before:
 * a thread began or ended while we walked. */
static bool in_list(struct prb_sampler *sampler, struct prb_sampler_slot *slot, prb_addr interp)
{
    if (slot->seen == sampler->number)
        return false;
    if (slot->seen + 1 != sampler->number) {
        prb_view_clear(slot->view); /* not refreshed with the others: its bytes are old */
        slot->unchanged = false;
        slot->cold = true;
    }
    slot->seen = sampler->number;
    slot->verified &= slot->unchanged;
    return read_head(sampler, slot) && slot->head.interp == interp;
}

/* ---- who may have moved ---- */

/*
 * Python code runs only with the GIL, so a thread that did not have it since the last sample has
 * not moved. take_gil() counts how often the GIL changes hands (switch_number, Python/ceval_gil.c):
 * while the count is the same, all but the last holder are unmoved, and only their interpreter is
 * read.  Now and then everything is read: a thread state without frames may leave the list without
 * the GIL.
 */
#define READ_ALL_EVERY 64

static struct prb_gil_note *note_of(struct prb_sampler *sampler,
                                    const struct prb_interpreter *interp)
{
    for (size_t i = 0; i < sampler->note_count; i++)
        if (sampler->notes[i].interp == interp->addr)
            return &sampler->notes[i];
    if (!PRB_GROW(sampler->notes, sampler->note_count, sampler->note_cap))
        return NULL;
    struct prb_gil_note *note = &sampler->notes[sampler->note_count++];
    *note = (struct prb_gil_note){.interp = interp->addr, .id = -1};
    return note;
}

/* One thread may run another's thread state without a change of hands (PyThreadState_Swap): to
 * enter a subinterpreter that shares its GIL. */
static bool shares_gil(const struct prb_raw_stacks *result, const struct prb_interpreter *interp)
{
    for (size_t i = 0; i < result->interpreter_count; i++)
        if (&result->interpreters[i] != interp && result->interpreters[i].gil == interp->gil)
            return true;
    return false;
}

/* Who had the GIL last, and how often it changed hands; false: not known. */
static bool read_switches(struct prb_sampler *sampler, const struct prb_interpreter *interp,
                          uint64_t *holder, uint64_t *switches)
{
    const struct prb_py *py = sampler->py;
    if (PRB_IS(&py->layout, gil, STATIC))
        return py->gil_last_holder && py->gil_switch_number &&
               prb_view_u64(sampler->lists, py->gil_last_holder, holder) &&
               prb_view_u64(sampler->lists, py->gil_switch_number, switches);
    return PRB_HAS(&py->layout, gil, switch_number) && !PRB_HAS(&py->layout, gil, enabled) &&
           interp->gil && list_word(sampler, interp->gil, PRB_F_gil_last_holder, holder) &&
           list_word(sampler, interp->gil, PRB_F_gil_switch_number, switches);
}

/* Update the note: whether no thread but its last holder had the GIL since it was made.  NULL:
 * unknown. */
static const struct prb_gil_note *note_gil(struct prb_sampler *sampler,
                                           const struct prb_interpreter *interp)
{
    struct prb_gil_note *note = NULL;
    uint64_t holder = 0, switches = 0;
    if (shares_gil(&sampler->result, interp) ||
        !read_switches(sampler, interp, &holder, &switches) || !(note = note_of(sampler, interp)))
        return NULL;
    bool same_count = note->switch_number == switches, same_holder = note->last_holder == holder;
    bool known = note->id == interp->id && holder != 0;
    note->mistrusted |= known && same_count && !same_holder && note->last_holder != 0;
    note->id = interp->id;
    note->gil = interp->gil;
    note->last_holder = holder;
    note->switch_number = switches;
    note->kept = known && same_count && same_holder && !note->mistrusted;
    return note;
}

void prb_sampler_forget_gil(struct prb_sampler *sampler)
{
    for (size_t i = 0; i < sampler->note_count; i++)
        sampler->notes[i].id = -1;
    sampler->active_only = false;
}

static void find_unmoved_threads(struct prb_sampler *sampler)
{
    for (size_t i = 0; i < sampler->capacity; i++)
        if (sampler->slots[i])
            sampler->slots[i]->unmoved = false;
    for (size_t i = 0; i < sampler->note_count; i++)
        sampler->notes[i].kept = false;
    for (size_t k = 0; k < sampler->result.interpreter_count; k++) {
        const struct prb_interpreter *interp = &sampler->result.interpreters[k];
        const struct prb_gil_note *note = note_gil(sampler, interp);
        if (!note || !note->kept || sampler->number % READ_ALL_EVERY == 0)
            continue;
        const struct prb_sampler_slot *last = prb_sampler_slot_find(sampler, note->last_holder);
        for (size_t i = 0; last && i < sampler->capacity; i++) {
            struct prb_sampler_slot *slot = sampler->slots[i];
            if (slot && slot->head.interp == interp->addr)
                slot->unmoved = slot->verified && slot->head.thread_id != last->head.thread_id;
        }
    }
}

bool prb_sampler_interpreters(struct prb_sampler *sampler, struct prb_error *err)
{
    if (!list_interpreters(sampler, err))
        return false;
    find_unmoved_threads(sampler);
    return true;
}

/* ---- one thread that has the GIL all the time, and the others ---- */

bool prb_sampler_choose_active(struct prb_sampler *sampler)
{
    const struct prb_raw_stacks *result = &sampler->result;
    sampler->active_only = false;
    sampler->samples_of_active = 0;
    sampler->active_count = 0;
    if (result->interpreter_count != 1 || sampler->note_count != 1 || !sampler->notes[0].kept ||
        !result->whole || !result->thread_count)
        return false;
    for (size_t i = 0; i < result->thread_count; i++) {
        if (result->threads[i].unmoved)
            continue;
        if (!PRB_GROW(sampler->active, sampler->active_count, sampler->active_cap))
            return false;
        sampler->active[sampler->active_count++] = i;
    }
    return sampler->active_only = true;
}

/* Threads that were verified since and do not have the GIL are unmoved now. */
static void drop_unmoved(struct prb_sampler *sampler, const struct prb_sampler_slot *last)
{
    size_t kept = 0;
    for (size_t k = 0; k < sampler->active_count; k++) {
        size_t i = sampler->active[k];
        struct prb_sampler_slot *slot = sampler->slot_of_thread[i];
        if (!slot->verified || slot->head.thread_id == last->head.thread_id) {
            sampler->active[kept++] = i;
            continue;
        }
        slot->unmoved = slot->unchanged = true;
        sampler->result.threads[i].unmoved = true;
    }
    sampler->active_count = kept;
}

bool prb_sampler_others_unmoved(struct prb_sampler *sampler)
{
    prb_addr interp = sampler->result.interpreters[0].addr;
    uint64_t first = 0;
    if (++sampler->samples_of_active >= READ_ALL_EVERY || !list_interpreters(sampler, NULL) ||
        sampler->result.interpreter_count != 1 || sampler->result.interpreters[0].addr != interp)
        return false;
    const struct prb_gil_note *note = note_gil(sampler, &sampler->result.interpreters[0]);
    const struct prb_sampler_slot *last =
        note && note->kept ? prb_sampler_slot_find(sampler, note->last_holder) : NULL;
    if (!last || !list_word(sampler, interp, PRB_F_interp_threads_head, &first) ||
        first != sampler->result.threads[0].tstate)
        return false;
    drop_unmoved(sampler, last);
    return true;
}

/* ---- threads ---- */

/* The thread list of one interpreter, newest first as in CPython. *whole: whether its end was
 * reached. */
static bool list_threads(struct prb_sampler *sampler, size_t interpreter, bool *whole,
                         struct prb_error *err)
{
    struct prb_raw_stacks *result = &sampler->result;
    prb_addr interp = result->interpreters[interpreter].addr;
    uint64_t tstate = 0;
    if (!list_word(sampler, interp, PRB_F_interp_threads_head, &tstate))
        return prb_fail_addr(err, interp, "interpreter state cannot be read");
    while (tstate) {
        if (result->thread_count >= PRB_THREADS_MAX)
            return prb_fail(err, PRB_CORRUPT, "more than %d threads", PRB_THREADS_MAX);
        struct prb_sampler_slot *slot = prb_sampler_slot_for(sampler, tstate, err);
        if (!slot)
            return false;
        if (!in_list(sampler, slot, interp)) {
            *whole = false;
            break;
        }
        if (!add_thread(sampler, interpreter, slot, err))
            return false;
        tstate = slot->next = slot->head.next;
    }
    return true;
}

bool prb_sampler_threads(struct prb_sampler *sampler, bool *whole, struct prb_error *err)
{
    sampler->number++;
    sampler->result.thread_count = 0;
    prb_view_clear(sampler->heads);
    *whole = true;
    for (size_t i = 0; i < sampler->result.interpreter_count; i++)
        if (!list_threads(sampler, i, whole, err))
            return false;
    return true;
}

#define BORN_MAX 64
static bool head_leads_to(struct prb_sampler *sampler, prb_addr interp, prb_addr first)
{
    struct prb_py *py = sampler->py;
    uint64_t tstate = 0;
    bool ok = prb_py_field(py, interp, PRB_F_interp_threads_head, &tstate, NULL);
    for (int born = 0; ok && tstate != first && tstate && born < BORN_MAX; born++)
        ok = prb_py_field(py, tstate, PRB_F_thread_next, &tstate, NULL);
    return ok && tstate == first;
}

bool prb_sampler_heads_stand(struct prb_sampler *sampler)
{
    const struct prb_raw_stacks *result = &sampler->result;
    size_t at = 0;
    for (size_t i = 0; i < result->interpreter_count; i++) {
        bool any = at < result->thread_count && result->threads[at].interpreter == i;
        prb_addr first = any ? result->threads[at].tstate : 0;
        if (!head_leads_to(sampler, result->interpreters[i].addr, first))
            return false;
        while (at < result->thread_count && result->threads[at].interpreter == i)
            at++;
    }
    return true;
}

bool prb_sampler_threads_lead_on(const struct prb_sampler *sampler)
{
    for (size_t i = 0; i < sampler->result.thread_count; i++)
        if (sampler->slot_of_thread[i]->head.next != sampler->slot_of_thread[i]->next)
            return false;
    return true;
}
