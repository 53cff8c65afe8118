/*
 * Who holds the GIL: its words (Python/ceval_gil.c) name a thread state, and this the thread.  The
 * thread state may be another thread's by the time it is read; so the GIL's words are read again
 * behind it, in the same system call.
 */
#include "py/gil.h"

#include "py/stack.h"

#define TRIES 8

/* Words that are read together, in this order. */
#define WORDS_MAX 5
struct words {
    struct prb_range ranges[WORDS_MAX];
    size_t count;
};

static void ask(struct words *words, prb_addr addr, size_t width, uint64_t *out)
{
    *out = 0;
    words->ranges[words->count++] = (struct prb_range){.addr = addr, .buf = out, .len = width};
}

static void ask_field(const struct prb_py *py, struct words *words, prb_addr base,
                      enum prb_field field, uint64_t *out)
{
    int32_t offset = py->layout.offset[field];
    *out = 0;
    if (offset != PRB_ABSENT)
        ask(words, base + (prb_addr)(int64_t)offset, prb_field_width(field), out);
}

static bool read_words(struct prb_py *py, struct words *words, struct prb_error *err)
{
    return prb_mem_readv(py->mem, words->ranges, words->count, err);
}

/* ---- one GIL ---- */

struct gil {
    uint64_t locked, last, switches; /* last: the thread state that had it last */
};

static void ask_gil(const struct prb_py *py, struct words *words, prb_addr addr, struct gil *gil)
{
    *gil = (struct gil){0};
    if (PRB_IS(&py->layout, gil, STATIC)) {
        ask(words, py->tstate_current, sizeof gil->last, &gil->last);
        return;
    }
    ask_field(py, words, addr, PRB_F_gil_locked, &gil->locked);
    ask_field(py, words, addr, PRB_F_gil_last_holder, &gil->last);
    ask_field(py, words, addr, PRB_F_gil_switch_number, &gil->switches);
}

static bool is_held(const struct prb_py *py, const struct gil *gil)
{
    return gil->last && (PRB_IS(&py->layout, gil, STATIC) || (int32_t)gil->locked > 0);
}

static bool nobody_else_took_it(const struct gil *before, const struct gil *after)
{
    return before->switches == after->switches && (before->last == after->last || !after->last);
}

static bool find_holder(struct prb_py *py, prb_addr addr, struct prb_gil_holder *out,
                        bool *held_out, struct prb_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        struct gil before, after;
        struct words first = {.count = 0}, second = {.count = 0};
        ask_gil(py, &first, addr, &before);
        if (!read_words(py, &first, err))
            return false;
        if (!(*held_out = is_held(py, &before)))
            return true;
        ask_field(py, &second, before.last, PRB_F_thread_thread_id, &out->thread_id);
        ask_field(py, &second, before.last, PRB_F_thread_native_thread_id, &out->native_id);
        ask_gil(py, &second, addr, &after);
        if (!read_words(py, &second, err))
            return false;
        if (nobody_else_took_it(&before, &after))
            return true;
    }
    return prb_fail(err, PRB_BUSY, "the GIL changed hands each time it was read");
}

/* ---- all of them ---- */

struct holders {
    struct prb_py *py;
    struct prb_gil_holder *items;
    size_t count;
    prb_addr gils[PRB_GILS_MAX]; /* interpreters may share one */
    size_t gil_count;
};

static bool add_gil(struct holders *holders, prb_addr addr, struct prb_error *err)
{
    bool held = false;
    for (size_t i = 0; i < holders->gil_count; i++)
        if (holders->gils[i] == addr)
            return true;
    if (holders->gil_count == PRB_GILS_MAX)
        return prb_fail(err, PRB_CORRUPT, "more than %d GILs", PRB_GILS_MAX);
    holders->gils[holders->gil_count++] = addr;
    if (!find_holder(holders->py, addr, &holders->items[holders->count], &held, err))
        return false;
    holders->count += held;
    return true;
}

static bool add_interpreters(struct holders *holders, struct prb_error *err)
{
    struct prb_py *py = holders->py;
    uint64_t interp = 0, gil = 0, next = 0;
    if (!prb_mem_u64(py->mem, py->interpreters, &interp, err))
        return false;
    for (size_t i = 0; interp; i++, interp = next) {
        struct words words = {.count = 0};
        if (i == PRB_INTERPRETERS_MAX)
            return prb_fail(err, PRB_CORRUPT, "more than %d interpreters", PRB_INTERPRETERS_MAX);
        ask_field(py, &words, interp, PRB_F_interp_gil, &gil);
        ask_field(py, &words, interp, PRB_F_interp_next, &next);
        if (!read_words(py, &words, err) || (gil && !add_gil(holders, gil, err)))
            return false;
    }
    return true;
}

bool prb_gil_is_known(const struct prb_py *py)
{
    return PRB_IS(&py->layout, gil, STATIC) ? py->tstate_current != 0
                                            : !PRB_IS(&py->layout, gil, NONE);
}

bool prb_gil_holders(struct prb_py *py, struct prb_gil_holder out[PRB_GILS_MAX], size_t *count_out,
                     struct prb_error *err)
{
    struct holders holders = {.py = py, .items = out};
    prb_addr only = PRB_IS(&py->layout, gil, RUNTIME)
                        ? py->runtime + (prb_addr)PRB_OFF(&py->layout, runtime, gil)
                        : 0;
    bool good = PRB_IS(&py->layout, gil, INTERPRETER) ? add_interpreters(&holders, err)
                                                      : add_gil(&holders, only, err);
    *count_out = holders.count;
    return good;
}
