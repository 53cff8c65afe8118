/*
 * The frame evaluator and the trace function.  The evaluator decides before a frame runs whether it
 * is traced, and puts its thread right again when it has ended; it stays callable for ever, since
 * an evaluator that came later may keep it as the one before.
 */
#include <pthread.h>

#include "inject/probe/debug/evaluation/evaluation.h"

struct prb_evaluation prb_evaluation;

typedef struct prb_py *(*frame_evaluator)(char *frame, int throw);
typedef struct prb_py *(*thread_evaluator)(char *thread, char *frame, int throw);

static struct {
    bool in;       /* ours is called, from the interpreter or by an evaluator above it */
    char *beneath; /* what stood there before; none or the default one: nobody's */
    char *covered; /* the evaluator above ours when ours was to go, which may still call it */
} hook;
/* The frame that was handed to a foreign evaluator: if it comes back, each keeps the other as the
 * one before. */
static pthread_key_t handed;
static pthread_once_t handed_once = PTHREAD_ONCE_INIT;
static void make_handed(void) { pthread_key_create(&handed, NULL); }

static bool is_default(const char *evaluator)
{
    return !evaluator || evaluator == prb_evaluation.default_evaluator;
}

static inline struct prb_py *call(bool with_thread, const void *evaluator, char *thread,
                                  char *frame, int throw)
{
    uintptr_t address = (uintptr_t)evaluator;
    return with_thread ? ((thread_evaluator)address)(thread, frame, throw)
                       : ((frame_evaluator)address)(frame, throw);
}

static __attribute__((noinline)) struct prb_py *run_foreign(bool with_thread, char *thread,
                                                            char *frame, int throw)
{
    pthread_once(&handed_once, make_handed);
    const void *before = pthread_getspecific(handed);
    if (before == frame)
        return call(with_thread, prb_evaluation.default_evaluator, thread, frame, throw);
    pthread_setspecific(handed, frame);
    struct prb_py *result = call(with_thread, hook.beneath, thread, frame, throw);
    pthread_setspecific(handed, before);
    prb_evaluation_hook_again();
    return result;
}

static inline struct prb_py *run(bool with_thread, char *thread, char *frame, int throw)
{
    if (prb_evaluation.foreign)
        return run_foreign(with_thread, thread, frame, throw);
    return call(with_thread, prb_evaluation.default_evaluator, thread, frame, throw);
}

/* ---- the trace function ---- */

static unsigned wanted(const char *frame)
{
    return prb_evaluation.raised |
           prb_evaluation_running(prb_evaluation_code(prb_evaluation_frame_code(frame)));
}

/* What is wanted of a frame because of who called it. */
static unsigned wanted_by(const char *caller)
{
    const struct prb_evaluation_code *known =
        caller ? prb_evaluation_code(prb_evaluation_frame_code(caller)) : NULL;
    return known && (known->step & PRB_DEBUG_CALL) ? PRB_DEBUG_CALL | PRB_DEBUG_RESUME : 0u;
}

struct event {
    char *thread, *inner;
    struct prb_debug_place place;
};

static bool report(struct event *of, enum prb_debug_event event, struct prb_py *value)
{
    of->place.event = event;
    of->place.value = value;
    if (!of->place.line)
        of->place.line = prb_evaluation.line_of_frame(of->place.frame);
    if (of->place.line < 0)
        of->place.line = 0;
    return prb_debug_happened(&of->place);
}

static bool report_call(struct event *of, struct prb_py *value)
{
    (void)value;
    enum prb_debug_event event =
        prb_evaluation_starts(of->inner) ? PRB_DEBUG_CALL : PRB_DEBUG_RESUME;
    unsigned events = wanted(of->inner) | wanted_by(prb_evaluation_caller(of->inner));
    if (prb_evaluation_is_new(prb_evaluation_code(of->place.code))) {
        prb_evaluation_reported(of->place.code);
        event = PRB_DEBUG_CALL;
        events |= event;
        of->place.planted = true;
    }
    bool ok = !(events & event) || report(of, event, NULL);
    prb_evaluation_apply(of->thread); /* less may be left to report */
    return ok;
}

static bool report_line(struct event *of, struct prb_py *value)
{
    (void)value;
    of->place.line = prb_evaluation_line(of->place.frame, of->place.code);
    const struct prb_evaluation_code *known = prb_evaluation_code(of->place.code);
    unsigned events = prb_evaluation.gate | (known ? known->step : 0);
    of->place.planted = prb_evaluation_planted(known, of->place.line);
    if (of->place.planted || (events & PRB_DEBUG_LINE))
        return report(of, PRB_DEBUG_LINE, NULL);
    if (!wanted(of->inner) && !prb_evaluation_is_noted(of->inner))
        prb_evaluation_apply(of->thread);
    return true;
}

static bool report_return(struct event *of, struct prb_py *value)
{
    enum prb_debug_event event = value ? PRB_DEBUG_RETURN : PRB_DEBUG_UNWIND;
    bool noted = prb_evaluation_is_noted(of->inner);
    struct prb_evaluation_entry *entry = prb_evaluation_entry_of(of->thread);
    PRB_AUTO(prb_py) struct prb_py *raised = noted && entry ? PRB_STEAL(entry->raised) : NULL;
    /* The hook reports exceptions that leave the frames which it ran. */
    bool ours = value || noted;
    bool ok = !ours || !(wanted(of->inner) & event) || report(of, event, value ? value : raised);
    if (noted && !prb_evaluation_caller(of->inner))
        prb_evaluation_set(of->thread, 0); /* the thread may end */
    return ok;
}

/* CPython hides it from the trace function while it leaves the frame.  Until then the frame's next
 * line is wanted: there it has been caught. */
static void keep_raised(char *thread, struct prb_py *exception)
{
    struct prb_evaluation_entry *entry = prb_evaluation_entry_make(thread);
    if (!entry)
        return;
    PRB_AUTO(prb_py) struct prb_py *before = entry->raised;
    prb_evaluation.py->Py_IncRef(exception);
    entry->raised = exception;
    prb_evaluation_set(thread, PRB_DEBUG_LINE);
}

static void forget_raised(char *thread)
{
    struct prb_evaluation_entry *entry = prb_evaluation_entry_of(thread);
    if (!entry || !entry->raised || entry->raised == prb_evaluation_handled(thread))
        return;
    PRB_AUTO(prb_py) struct prb_py *before = PRB_STEAL(entry->raised);
    prb_evaluation_apply(thread);
}

/* value: (type, value, traceback).  Python/ceval.c also reports exceptions that an instruction
 * itself swallows (the StopIteration that ends a loop): they have no traceback of this frame. */
static bool report_exception(struct event *of, struct prb_py *value)
{
    unsigned events = wanted(of->inner);
    if (!(events & (PRB_DEBUG_RAISE | PRB_DEBUG_UNWIND)))
        return true;
    struct prb_py *exception = prb_evaluation.item(value, 1);
    struct prb_py *traceback = prb_evaluation.item(value, 2);
    if (!exception || !traceback || traceback == prb_evaluation.py->none)
        return true;
    const char *raised_in =
        prb_evaluation_word((char *)traceback, PRB_OFF(&prb_evaluation.layout, traceback, frame));
    if (raised_in != (char *)of->place.frame)
        return true;
    /* As CPython does when it is caught. */
    if (prb_evaluation.set_traceback(exception, traceback) < 0)
        prb_evaluation.py->PyErr_Clear();
    if ((events & PRB_DEBUG_UNWIND) && prb_evaluation_is_noted(of->inner))
        keep_raised(of->thread, exception);
    return !(events & PRB_DEBUG_RAISE) || report(of, PRB_DEBUG_RAISE, exception);
}

int prb_evaluation_trace(struct prb_py *object, struct prb_py *frame, int what,
                         struct prb_py *value)
{
    static bool (*const tellers[])(struct event *, struct prb_py *) = {
        [PRB_TRACE_CALL] = report_call,
        [PRB_TRACE_EXCEPTION] = report_exception,
        [PRB_TRACE_LINE] = report_line,
        [PRB_TRACE_RETURN] = report_return,
    };
    char *thread = prb_evaluation.this_thread();
    const struct prb_evaluation_entry *entry = prb_evaluation_entry_of(thread);
    if (entry && entry->original && entry->original(object, frame, what, value) < 0)
        return -1;
    if (!prb_evaluation.on || what < 0 || (size_t)what >= sizeof tellers / sizeof *tellers) {
        prb_evaluation_apply(thread);
        return 0;
    }
    struct event of = {.thread = thread, .inner = prb_evaluation_inner(frame)};
    of.place.frame = frame;
    of.place.code = prb_evaluation_frame_code(of.inner);
    prb_evaluation_hook_again();
    if (what == PRB_TRACE_LINE || what == PRB_TRACE_CALL)
        forget_raised(thread);
    bool ok = prb_py_is_inside() || tellers[what](&of, value);
    /* A change that our own code made gave its frames' thread what those want: nothing. */
    bool ends = what == PRB_TRACE_RETURN && !prb_evaluation_caller(of.inner);
    if (!prb_evaluation_traces(thread) && !ends)
        prb_evaluation_apply(thread);
    return ok ? 0 : -1;
}

/* ---- the evaluator ---- */

/* An exception leaves a frame, which has ended but is still there. */
static void report_unwind(char *thread, char *frame)
{
    struct event of = {.thread = thread, .inner = frame};
    of.place.frame = prb_evaluation_outer(frame);
    of.place.code = prb_evaluation_frame_code(frame);
    if (!of.place.frame || !prb_evaluation.on || !(wanted(frame) & PRB_DEBUG_UNWIND) ||
        prb_evaluation_tracing(thread) || prb_py_is_inside())
        return;
    struct prb_py *type = NULL, *value = NULL, *traceback = NULL;
    prb_evaluation.py->PyErr_Fetch(&type, &value, &traceback);
    prb_evaluation.normalize(&type, &value, &traceback);
    if (value && traceback && prb_evaluation.set_traceback(value, traceback) < 0)
        prb_evaluation.py->PyErr_Clear();
    prb_evaluation_enter(thread);
    bool ok = report(&of, PRB_DEBUG_UNWIND, value);
    prb_evaluation_leave(thread);
    if (ok) {
        prb_evaluation.restore(type, value, traceback);
        return;
    }
    prb_py_drop(type);
    prb_py_drop(value);
    prb_py_drop(traceback);
}

/* A frame has returned a value to one whose results are wanted.  NULL: an exception is set. */
static struct prb_py *report_result(char *thread, const char *frame, struct prb_py *value)
{
    char *caller = prb_evaluation_frame(thread);
    const struct prb_evaluation_code *known =
        caller ? prb_evaluation_code(prb_evaluation_frame_code(caller)) : NULL;
    if (!known || !(known->step & PRB_DEBUG_RESULT) || !prb_evaluation.on ||
        prb_evaluation_tracing(thread) || prb_py_is_inside())
        return value;
    struct event of = {.thread = thread, .inner = caller};
    of.place.frame = prb_evaluation_outer(caller);
    of.place.code = prb_evaluation_frame_code(frame);
    if (!of.place.frame)
        return value;
    prb_evaluation_enter(thread);
    bool ok = report(&of, PRB_DEBUG_RESULT, value);
    prb_evaluation_leave(thread);
    if (!ok)
        prb_py_drop(value);
    return ok ? value : NULL;
}

/* A frame of which something is wanted, or whose caller is traced. */
static __attribute__((noinline)) struct prb_py *run_watched(bool with_thread, char *thread,
                                                            char *frame, int throw)
{
    if (prb_py_is_inside()) {
        /* A parked thread is in our trace function already, which keeps all others off. */
        if (!prb_evaluation_tracing(thread))
            prb_evaluation_set(thread, 0);
        return run(with_thread, thread, frame, throw);
    }
    struct prb_py *code = prb_evaluation_frame_code(frame);
    const struct prb_evaluation_code *known = prb_evaluation_code(code);
    unsigned events = prb_evaluation_running(known) | wanted_by(prb_evaluation_frame(thread));
    if (prb_evaluation_is_new(known))
        events |= PRB_DEBUG_CALL;
    prb_evaluation_set(thread, events);
    struct prb_py *result = run(with_thread, thread, frame, throw);
    if (result)
        result = report_result(thread, frame, result);
    else
        report_unwind(thread, frame);
    prb_evaluation_apply(thread);
    return result;
}

/* Whether nothing is to be done about a frame before it runs. */
static inline bool is_plain(bool with_thread, char *thread, char *frame)
{
    if (*prb_evaluation_noted_place(frame))
        prb_evaluation_forget_frame(frame);
    if (prb_evaluation.taken &&
        prb_evaluation_has_function(with_thread ? thread : prb_evaluation.this_thread()))
        return false;
    struct prb_py *code = prb_evaluation_frame_code(frame);
    const struct prb_py **plain = prb_evaluation_plain(code);
    if (*plain == code)
        return true;
    const struct prb_evaluation_code *known = prb_evaluation_code(code);
    if (prb_evaluation_running(known) || prb_evaluation_is_new(known))
        return false;
    *plain = code;
    return true;
}

static inline struct prb_py *evaluate(bool with_thread, char *thread, char *frame, int throw)
{
    if (!prb_evaluation.on)
        return run(with_thread, thread, frame, throw);
    if (!is_plain(with_thread, thread, frame))
        return run_watched(with_thread, with_thread ? thread : prb_evaluation.this_thread(), frame,
                           throw);
    unsigned epoch = prb_evaluation.epoch;
    struct prb_py *result = run(with_thread, thread, frame, throw);
    if (__builtin_expect(result && prb_evaluation.epoch == epoch, true))
        return result;
    thread = prb_evaluation.this_thread();
    if (!result && (prb_evaluation.raised & PRB_DEBUG_UNWIND))
        report_unwind(thread, frame);
    if (prb_evaluation.epoch != epoch)
        prb_evaluation_apply(thread);
    return result;
}

static struct prb_py *evaluate_frame(char *frame, int throw)
{
    return evaluate(false, NULL, frame, throw);
}

static struct prb_py *evaluate_in_thread(char *thread, char *frame, int throw)
{
    return evaluate(true, thread, frame, throw);
}

/* ---- in and out ---- */

static char *ours(void)
{
    return PRB_IS(&prb_evaluation.layout, evaluator, FRAME) ? (char *)(uintptr_t)evaluate_frame
                                                            : (char *)(uintptr_t)evaluate_in_thread;
}

static char *in_place(void)
{
    return prb_evaluation_word(prb_evaluation.interp,
                               PRB_OFF(&prb_evaluation.layout, interp, eval_frame));
}

static void put_in_place(char *evaluator)
{
    memcpy(prb_evaluation.interp + PRB_OFF(&prb_evaluation.layout, interp, eval_frame), &evaluator,
           sizeof evaluator);
}

static void put_ours(char *above)
{
    hook.beneath = above;
    prb_evaluation.foreign = !is_default(above);
    put_in_place(ours());
}

bool prb_evaluation_hook(bool in)
{
    char *now = in_place();
    if (in == hook.in)
        return true;
    if (!in) {
        hook.covered = now == ours() || is_default(now) || now == hook.beneath ? NULL : now;
        if (now == ours())
            put_in_place(hook.beneath);
        prb_evaluation_forget_frames();
        hook.in = false;
        return true;
    }
    if (!prb_evaluation_note_frames())
        return false;
    if (now != ours() && (!hook.covered || now != hook.covered))
        put_ours(now);
    hook.in = true;
    return true;
}

void prb_evaluation_hook_again(void)
{
    if (!hook.in)
        return;
    char *now = in_place();
    if (__builtin_expect(now == ours(), true))
        return;
    /* Another one above ours calls ours; the one that lay beneath does not. */
    if ((!is_default(now) && now != hook.beneath) || !prb_evaluation_note_frames())
        return;
    put_ours(now);
    prb_evaluation.epoch++;
    prb_evaluation_apply_all();
}
