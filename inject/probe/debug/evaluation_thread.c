/*
 * Threads' states: our trace function in and out of them by their fields, as PyEval_SetTrace()
 * would, but for any thread, without its audit event and without a word to what the program has
 * there.  c_traceobj stays the program's: its function is called by ours, and sys.gettrace()
 * answers as before.
 */
#include <stdlib.h>

#include "inject/probe/debug/evaluation.h"

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

/* ---- trace functions of the program ---- */

static struct original {
    const char *thread;
    prb_trace_function function;
} * originals;
static size_t original_count, original_room;

static struct original *original_at(const char *thread)
{
    for (size_t i = 0; i < original_count; i++)
        if (originals[i].thread == thread)
            return &originals[i];
    return NULL;
}

prb_trace_function prb_evaluation_original(const char *thread)
{
    const struct original *at = original_count ? original_at(thread) : NULL;
    return at ? at->function : NULL;
}

static bool keep_original(const char *thread, prb_trace_function function)
{
    struct original *at = original_at(thread);
    if (!function) {
        /* What stands there is of a thread that ended, or was replaced. */
        if (at)
            *at = originals[--original_count];
        return true;
    }
    if (!at && original_count == original_room) {
        size_t room = original_room ? original_room * 2 : 16;
        struct original *more =
            room <= PRB_EVALUATION_TRACED_MAX ? realloc(originals, room * sizeof *more) : NULL;
        if (!more)
            return false;
        originals = more;
        original_room = room;
    }
    if (!at)
        at = &originals[original_count++];
    *at = (struct original){thread, function};
    return true;
}

/* ---- how many threads have a trace function: up to 3.9 lines are told only when some have ---- */

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

static void take(char *thread, char *now)
{
    prb_trace_function original, ours = prb_evaluation_trace;
    memcpy(&original, &now, sizeof original);
    if (!keep_original(thread, original))
        return;
    if (!now)
        count_tracing(1);
    put(thread, prb_evaluation.tracefunc, &ours, sizeof ours);
}

static void give(char *thread)
{
    prb_trace_function original = prb_evaluation_original(thread);
    keep_original(thread, NULL);
    if (!original)
        count_tracing(-1);
    put(thread, prb_evaluation.tracefunc, &original, sizeof original);
}

void prb_evaluation_set(char *thread, unsigned events)
{
    char *now = word_at(thread, prb_evaluation.tracefunc);
    bool ours = prb_evaluation_traces(thread);
    if (events && !ours)
        take(thread, now);
    else if (!events && ours)
        give(thread);
    else if (!events)
        return;
    bool others = prb_evaluation_traces(thread) ? prb_evaluation_original(thread) != NULL
                                                : word_at(thread, prb_evaluation.tracefunc) != NULL;
    bool flag = others || (events & ~(unsigned)NO_LINES) ||
                word_at(thread, PRB_OFF(LAYOUT, thread, profilefunc));
    put_flag(thread, flag && !number_at(thread, PRB_OFF(LAYOUT, thread, tracing)));
}

void prb_evaluation_apply(char *thread)
{
    const char *frame = prb_evaluation.on ? prb_evaluation_frame(thread) : NULL;
    unsigned events = 0;
    for (bool callers = true; frame && callers; frame = prb_evaluation_caller(frame)) {
        events |= prb_evaluation_running(prb_evaluation_code(prb_evaluation_frame_code(frame)));
        if (prb_evaluation.foreign && prb_evaluation_is_noted(frame))
            events |= PRB_DEBUG_LINE;
        callers = !(events & ~(unsigned)NO_LINES) && prb_evaluation_is_noted(frame);
    }
    prb_evaluation_set(thread, events);
}

void prb_evaluation_apply_all(void)
{
    for (char *thread = prb_evaluation.first_thread(prb_evaluation.interp); thread;
         thread = prb_evaluation.next_thread(thread))
        prb_evaluation_apply(thread);
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
