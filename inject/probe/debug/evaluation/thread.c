/*
 * Threads' states: our trace function in and out of them by their fields, as PyEval_SetTrace()
 * would, but for any thread, without its audit event and without a word to what the program has
 * there.  c_traceobj stays the program's: its function is called by ours, and sys.gettrace()
 * answers as before.
 */
#include <stdlib.h>

#include "inject/probe/debug/evaluation/evaluation.h"

#define LAYOUT (&prb_evaluation.layout)
#define NO_LINES (PRB_DEBUG_RAISE | PRB_DEBUG_UNWIND) /* events that come without the flag */

static char *word_at(const char *at, int32_t offset) { return prb_evaluation_word(at, offset); }

static int number_at(const char *at, int32_t offset)
{
    int number;
    memcpy(&number, at + offset, sizeof number);
    return number;
}

static void put(char *at, int32_t offset, const void *value, size_t len)
{
    memcpy(at + offset, value, len);
}

static void put_number(char *at, int32_t offset, int number)
{
    put(at, offset, &number, sizeof number);
}

/* ---- frames ---- */

char *prb_evaluation_frame(const char *thread)
{
    if (PRB_IS(LAYOUT, frame_chain, FRAME_OBJECTS))
        return word_at(thread, PRB_OFF(LAYOUT, thread, frame));
    char *record = word_at(thread, PRB_OFF(LAYOUT, thread, cframe));
    return record ? word_at(record, PRB_OFF(LAYOUT, cframe, current_frame)) : NULL;
}

char *prb_evaluation_caller(const char *frame)
{
    return word_at(frame, PRB_OFF(LAYOUT, frame, previous));
}

char *prb_evaluation_inner(struct prb_py *frame)
{
    if (PRB_HAS(LAYOUT, frame_object, frame))
        return word_at((char *)frame, PRB_OFF(LAYOUT, frame_object, frame));
    return (char *)frame;
}

struct prb_py *prb_evaluation_outer(char *frame)
{
    if (PRB_HAS(LAYOUT, frame, frame_obj))
        return (struct prb_py *)word_at(frame, PRB_OFF(LAYOUT, frame, frame_obj));
    return (struct prb_py *)frame;
}

int prb_evaluation_line(struct prb_py *frame, struct prb_py *code)
{
    /* f_lineno is an earlier line there, when tracing began in the middle of a line. */
    if (PRB_IS(LAYOUT, instr, LASTI_BYTES))
        return prb_evaluation.line_of_code(code,
                                           number_at((char *)frame, PRB_OFF(LAYOUT, frame, instr)));
    return number_at((char *)frame, PRB_OFF(LAYOUT, frame_object, lineno));
}

bool prb_evaluation_starts(const char *frame)
{
    if (!PRB_IS(LAYOUT, instr, PREV_INSTR))
        return number_at(frame, PRB_OFF(LAYOUT, frame, instr)) < 0;
    /* RESUME: its argument is 0 at a function's begin. */
    const char *instruction = word_at(frame, PRB_OFF(LAYOUT, frame, instr));
    return instruction[1] == 0;
}

struct prb_py *prb_evaluation_handled(const char *thread)
{
    if (PRB_HAS(LAYOUT, thread, exc_value))
        return (struct prb_py *)word_at(thread, PRB_OFF(LAYOUT, thread, exc_value));
    const char *item = word_at(thread, PRB_OFF(LAYOUT, thread, exc_info));
    return item ? (struct prb_py *)word_at(item, PRB_OFF(LAYOUT, exc_stack_item, exc_value)) : NULL;
}

/* ---- how many threads have a trace function: up to 3.9 lines are reported only when some have ---- */

/* Where the count cannot be reached, PyEval_SetTrace() on this thread moves it by one. */
static void count_by_call(int step)
{
    char *thread = prb_evaluation.this_thread();
    int32_t function_at = PRB_OFF(LAYOUT, thread, tracefunc),
            object_at = PRB_OFF(LAYOUT, thread, traceobj),
            flag_at = PRB_OFF(LAYOUT, thread, use_tracing);
    char *function = word_at(thread, function_at), *object = word_at(thread, object_at);
    int flag = number_at(thread, flag_at);
    prb_trace_function ours = prb_evaluation_trace;
    char *nothing = NULL;
    put(thread, object_at, &nothing, sizeof nothing);
    if (step > 0) {
        put(thread, function_at, &nothing, sizeof nothing);
        prb_evaluation.set_trace(ours, NULL);
    } else {
        put(thread, function_at, &ours, sizeof ours);
        prb_evaluation.set_trace(NULL, NULL);
    }
    put(thread, function_at, &function, sizeof function);
    put(thread, object_at, &object, sizeof object);
    put_number(thread, flag_at, flag);
}

static void count_tracing(int step)
{
    char *at = prb_evaluation.interp;
    int32_t offset = PRB_OFF(LAYOUT, interp, tracing_possible);
    if (PRB_HAS(LAYOUT, runtime, tracing_possible)) {
        at = prb_evaluation.runtime;
        offset = PRB_OFF(LAYOUT, runtime, tracing_possible);
    }
    if (offset != PRB_ABSENT)
        put_number(at, offset, number_at(at, offset) + step);
    else if (PRB_HAS(LAYOUT, thread, use_tracing) && !prb_evaluation.plain)
        count_by_call(step);
}

/* ---- a thread's state ---- */

uint64_t prb_evaluation_thread_id(const char *thread)
{
    uint64_t id = 0;
    if (PRB_HAS(LAYOUT, thread, id))
        memcpy(&id, thread + PRB_OFF(LAYOUT, thread, id), sizeof id);
    return id;
}

/* The flag that has CPython look at the trace and profile functions at all. */
static void put_flag(char *thread, bool on)
{
    if (PRB_HAS(LAYOUT, thread, use_tracing)) {
        put_number(thread, PRB_OFF(LAYOUT, thread, use_tracing), on);
        return;
    }
    char *record = word_at(thread, PRB_OFF(LAYOUT, thread, cframe));
    unsigned char byte = on ? 255 : 0; /* or-ed to opcodes in 3.11; the low byte of 3.10's int */
    put(record, PRB_OFF(LAYOUT, cframe, use_tracing), &byte, 1);
}

/*
 * Quiet: our function is there for exceptions only and does not count among those that want lines,
 * as that would have all threads run slower, and for ever when the thread ends so: nothing says
 * its end.
 */
static void take(char *thread, char *now, bool quiet)
{
    prb_trace_function original, ours = prb_evaluation_trace;
    memcpy(&original, &now, sizeof original);
    quiet = quiet && !original;
    struct prb_evaluation_entry *entry =
        original || quiet ? prb_evaluation_entry_make(thread) : prb_evaluation_entry_of(thread);
    if (!entry && (original || quiet))
        return;
    if (entry) {
        /* What else stands there is of a thread that ended. */
        entry->original = original;
        entry->quiet = quiet;
        entry->id = prb_evaluation_thread_id(thread);
    }
    if (!now && !quiet)
        count_tracing(1);
    prb_evaluation.taken++;
    put(thread, prb_evaluation.tracefunc, &ours, sizeof ours);
}

/* The program's sys.settrace() took our function, which did not count, for one that did. */
static void count_again(const char *thread)
{
    struct prb_evaluation_entry *entry = prb_evaluation_entry_of(thread);
    if (!entry || !entry->quiet || prb_evaluation_traces(thread))
        return;
    if (entry->id == prb_evaluation_thread_id(thread))
        count_tracing(1);
    prb_evaluation_keep_less(thread);
}

static void be_quiet(const char *thread, bool quiet)
{
    struct prb_evaluation_entry *entry = prb_evaluation_entry_of(thread);
    if ((entry && entry->original) || (entry && entry->quiet) == quiet)
        return;
    entry = prb_evaluation_entry_make(thread);
    if (!entry)
        return;
    entry->quiet = quiet;
    count_tracing(quiet ? -1 : 1);
}

static void give(char *thread)
{
    const struct prb_evaluation_entry *entry = prb_evaluation_entry_of(thread);
    prb_trace_function original = entry ? entry->original : NULL;
    if (!original && !(entry && entry->quiet))
        count_tracing(-1);
    if (prb_evaluation.taken)
        prb_evaluation.taken--;
    put(thread, prb_evaluation.tracefunc, &original, sizeof original);
    prb_evaluation_keep_less(thread);
}

void prb_evaluation_set(char *thread, unsigned events)
{
    count_again(thread);
    char *now = word_at(thread, prb_evaluation.tracefunc);
    bool ours = prb_evaluation_traces(thread);
    bool quiet = !(events & ~(unsigned)NO_LINES) && PRB_HAS(LAYOUT, thread, use_tracing);
    if (!events && !ours)
        return;
    if (!events)
        give(thread);
    else if (!ours)
        take(thread, now, quiet);
    else
        be_quiet(thread, quiet);
    const struct prb_evaluation_entry *entry = prb_evaluation_entry_of(thread);
    bool others = prb_evaluation_traces(thread) ? entry && entry->original
                                                : word_at(thread, prb_evaluation.tracefunc) != NULL;
    bool flag = others || (events & ~(unsigned)NO_LINES) ||
                word_at(thread, PRB_OFF(LAYOUT, thread, profilefunc));
    put_flag(thread, flag && !number_at(thread, PRB_OFF(LAYOUT, thread, tracing)));
}

static bool is_ours(const char *thread)
{
    return thread == prb_evaluation.this_thread() && prb_py_is_inside() &&
           !prb_evaluation_tracing(thread);
}

void prb_evaluation_apply(char *thread)
{
    const char *frame = prb_evaluation.on ? prb_evaluation_frame(thread) : NULL;
    const struct prb_evaluation_entry *entry = prb_evaluation_entry_of(thread);
    bool to_end = prb_evaluation.foreign || (entry && entry->raised);
    unsigned events = 0;
    for (bool callers = true; frame && callers; frame = prb_evaluation_caller(frame)) {
        events |= prb_evaluation_running(prb_evaluation_code(prb_evaluation_frame_code(frame)));
        if (prb_evaluation_is_noted(frame))
            events |= (prb_evaluation.raised & PRB_DEBUG_UNWIND) | (to_end ? PRB_DEBUG_LINE : 0u);
        callers = !(events & ~(unsigned)NO_LINES) && prb_evaluation_is_noted(frame);
    }
    prb_evaluation_set(thread, events && is_ours(thread) ? 0 : events);
}

void prb_evaluation_apply_all(void)
{
    for (char *thread = prb_evaluation.first_thread(prb_evaluation.interp); thread;
         thread = prb_evaluation.next_thread(thread))
        prb_evaluation_apply(thread);
    /* Others have gone: with their thread, or by the program's sys.settrace(). */
    unsigned taken = 0;
    for (char *thread = prb_evaluation.first_thread(prb_evaluation.interp); thread;
         thread = prb_evaluation.next_thread(thread))
        taken += prb_evaluation_traces(thread);
    prb_evaluation.taken = taken;
}

bool prb_evaluation_tracing(const char *thread)
{
    return number_at(thread, PRB_OFF(LAYOUT, thread, tracing)) != 0;
}

void prb_evaluation_enter(char *thread)
{
    int32_t at = PRB_OFF(LAYOUT, thread, tracing);
    put_number(thread, at, number_at(thread, at) + 1);
    put_flag(thread, false);
}

void prb_evaluation_leave(char *thread)
{
    int32_t at = PRB_OFF(LAYOUT, thread, tracing);
    put_number(thread, at, number_at(thread, at) - 1);
    if (!prb_evaluation_tracing(thread))
        put_flag(thread, word_at(thread, prb_evaluation.tracefunc) ||
                             word_at(thread, PRB_OFF(LAYOUT, thread, profilefunc)));
    prb_evaluation_apply(thread);
}
