/*
 * The debugger inside the target: C does what needs every event or no GIL (hooks, the gate, parked
 * threads), Python (the files of agent/, run like the agent) decides and looks at objects.
 *
 * One session at a time, owned by one client of the control socket: its request DEBUG stays open
 * and carries events as items; DEBUG_CALL is a method of methods.def.  When the client goes, the
 * session ends: the hooks are taken out and all threads go on.
 *
 * WORDS.  Gate: while it is armed, every Python thread that reaches a line, a call, a return from
 * native code or a backward jump parks.  Park: wait on a condition variable of ours, the GIL
 * released, inside the hook.  A parked thread can run calls itself, so that its thread-locals are
 * right.  Mechanism: how this CPython reports events: monitoring (PEP 669, 3.12+) or frame
 * evaluation (PEP 523) with confined tracing (3.6-3.11).  The version does not decide, but
 * what dlsym(3) and the layout find.
 *
 * THREADS.  Hooks run on the program's threads with the GIL.  A thread of a job (python/job.h), and
 * a parked thread that runs a call, never park and are not stepped: thread-local `inside`.
 * Lock order: the GIL, then the session's lock; nobody waits for the GIL with the lock held.
 */
#ifndef PRB_PROBE_DEBUG_H
#define PRB_PROBE_DEBUG_H

#include "inject/probe/python/api.h"

/* ---- events of a mechanism, on the program's thread, with the GIL ---- */

enum prb_debug_event {
    PRB_DEBUG_LINE = 1 << 0,   /* about to run a line */
    PRB_DEBUG_CALL = 1 << 1,   /* a function begins */
    PRB_DEBUG_RESUME = 1 << 2, /* a generator or coroutine goes on */
    PRB_DEBUG_JUMP = 1 << 3,   /* backward, so that a loop of one line can be stopped */
    PRB_DEBUG_RETURN = 1 << 4, /* or a yield; value: what it returns */
    PRB_DEBUG_RAISE = 1 << 5,  /* value: the exception */
    PRB_DEBUG_UNWIND = 1 << 6, /* a frame ends by an exception; value: that */
    PRB_DEBUG_CALLEE = 1 << 7, /* about to call value; once an instruction (monitoring) */
    PRB_DEBUG_RESULT = 1 << 8, /* what a function returned to the frame; code: the function's
                                  (frame evaluation) */
};

struct prb_debug_place {
    enum prb_debug_event event;
    struct prb_py *frame; /* PyFrameObject, borrowed */
    struct prb_py *code;  /* borrowed */
    int line;             /* 0: not known */
    struct prb_py *value; /* borrowed or NULL; an exception is normalised, its __traceback__ as far
                             as it came */
    bool planted;         /* a line that plant() named; CALL: code that watch_new_code() reports */
};

/* Whether anybody waits for such an event on this thread: asked before a frame object is made. */
bool prb_debug_wanted(enum prb_debug_event event, const struct prb_py *code, bool planted);

/* What a mechanism calls.  May park; may leave an exception set (a goto, an interruption): then
 * false, and the mechanism lets it pass to the program. */
bool prb_debug_happened(const struct prb_debug_place *place);

/* ---- a mechanism: all functions with the GIL, on a job's thread or a parked one ---- */

struct prb_debug_mechanism {
    const char *name; /* "monitoring", "frame evaluation" */
    /* Whether this interpreter has what it needs; err says what not, NOT_FOUND: all of it. */
    bool (*usable)(const struct prb_py_api *py, struct prb_error *err);
    bool (*begin)(const struct prb_py_api *py, struct prb_error *err);
    /* Take everything out again; the program runs at full speed. */
    void (*end)(const struct prb_py_api *py);
    /* Lines of a code object to report (LINE, planted); count 0: none any more.  Acts at once, in
     * frames that run or are suspended, too. */
    bool (*plant)(const struct prb_py_api *py, struct prb_py *code, const int *lines, size_t count);
    /* CALL, once for each code object that runs and was not reported since this was switched on. */
    bool (*watch_new_code)(const struct prb_py_api *py, bool on);
    /* A mask of RAISE and UNWIND, everywhere. */
    bool (*watch_exceptions)(const struct prb_py_api *py, unsigned events);
    /* The events that are wanted of frames of one code object (LINE, RETURN, UNWIND, CALL of what
     * they call, JUMP, CALLEE, RESULT), for stepping; 0: none any more.  Other threads' are left
     * out by the core. */
    bool (*step)(const struct prb_py_api *py, struct prb_py *code, unsigned events);
    /* LINE, CALL, RESUME, JUMP of everything, all threads, those born later and those that come
     * back from native code included. */
    bool (*gate)(const struct prb_py_api *py, bool armed);
    /* The value of a local variable of the frame that a LINE is of, by its name and its index in
     * co_varnames, a new reference; NULL: it has none, and an exception may be set. */
    struct prb_py *(*local)(const struct prb_py_api *py, struct prb_py *frame, struct prb_py *name,
                            long index);
    /* In a child after fork(2), which may have no GIL: all that plain stores can take out; end()
     * follows when Python code reaches the rest.  NULL: nothing. */
    void (*forked)(void);
};
extern const struct prb_debug_mechanism prb_debug_monitoring, prb_debug_evaluation;

/* ---- the session (session.c, gate.c, request.c) ---- */

/* In a child after fork(2): no session, the hooks of this process out without any call. */
void prb_debug_forked(void);
/* The probe detaches, or the interpreter ends: as when the client goes. */
void prb_debug_end(void);

/*
 * ---- how its Python is loaded ----
 *
 * agent/agent.py is executed in a namespace of its own (python/space.h), whose `probe` has, besides
 * what every group has:
 *
 *   functions   a dict: what Python may call, below
 *   methods     a dict: method -> the file of agent/ that has it (methods.def)
 *
 * agent.py adds part(name), engine (functions as attributes), Failed and caught(error) for the other
 * files, and C takes call, happened, parked, forget and close out of it.
 *
 * ---- what Python may call: probe.functions (engine.c) ----
 *
 *   emit(bytes, important=True)
 *       One event, JSON.  Never blocks.  When the client is slow, events that are not important are
 *       left out and counted; a client that stays slow is dropped.
 *   plant(code, lines)
 *       Report these lines of a code object (a tuple of int); (): none any more.
 *   conditions(code, ((line, condition, locals), ...))
 *       Lines of a code object whose only breakpoint has a condition, a code object that C evaluates:
 *       happened() is not called where it is false.  locals: (name, index in co_varnames, ...) of the
 *       variables that it names; None: the frame's own dict.  Those that were set before go.
 *   watch_new_code(on), watch_exceptions(mask), step(ident, code, events)
 *       As in struct prb_debug_mechanism.  step: of the thread of that ident.
 *   gate(armed)
 *       Close the gate, or open it for threads without a reason of their own.
 *   parked()
 *       [(ident, native id, frame, reason or None)] of the parked threads.
 *   resume(ident)
 *       One parked thread goes on; 0: all do, and the gate opens.
 *   found(event, frame, line, value)
 *       An event that Python itself came upon, on its thread.  happened() is asked; it may park.
 *   keep_pending(exception)
 *       Whether an exception that our code caught is of a signal handler of the program.  If so, and
 *       this thread is in a hook, it is raised when the thread goes on in the program.
 *   yield_gil()
 *       Let other threads have the GIL.  Whatever takes longer than 0.5 ms calls it now and then.
 *   repr(value, seconds)
 *       The value's repr, or None where it takes longer and was interrupted; 0: no limit.  In a call
 *       alone (below): one that cannot be interrupted leaves the call behind.
 *   native_id(ident)
 *       gettid(2) of a thread with a Python thread state; 0: not known.
 *   save_locals(frame)
 *       PyFrame_LocalsToFast(), where CPython has it (nothing from 3.13 on).
 *   take_children(name, seconds)
 *       Children of os.fork() announce themselves at this abstract socket and wait that long for a
 *       session ("": no longer).  True: born() is not registered in this process yet (birth.h).
 *   born()
 *       For os.register_at_fork(after_in_child=...), once for ever.
 *   set_variable(name, value)
 *       In the environment as C has it; value None: it is removed.
 *   child_waits()
 *       A session is attached.  Whether this process waits at its birth.
 *   child_goes()
 *       It need not wait any longer.
 *   Interrupted
 *       The class of the exception that ends our code, when it does not end by itself.
 *   mechanism, without
 *       The mechanism's name; "" where this CPython has none, and then `without` says why.
 *
 * ---- what C calls, with the GIL, on the thread it is about ----
 *
 * An exception that they raise is reported to the client as output, but for call().
 *
 *   call(method, arguments: bytes) -> bytes
 *       A DEBUG_CALL, both JSON (methods.def).  An exception fails the request: its str is the text,
 *       its attribute `code` (an int, enum prb_code) the code.
 *   happened(event, frame, code, line, value, planted, judged) -> str or None
 *       A reason to park, or None to go on.  A reason closes the gate.  It is asked first for
 *       planted lines and steps while the gate is closed, too: None then parks by the gate.
 *       judged: None, or (condition, None or what it raised) of one that C evaluated: it is not false.
 *   parked(ident, frame, reason)
 *       The thread parks: functions.parked() has it, and calls can run on it from now on.  It emits
 *       "stopped".  Not called for threads that only the gate stops.
 *   forget(ident)
 *       A signal handler of the program ended happened(): there is no stop.
 *   close()
 *       The session ended: drop every reference.
 *
 * A generator that was suspended when new code began to be watched: its RESUME counts as its CALL.
 */

#endif
