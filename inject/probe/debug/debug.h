/*
 * The debugger inside the target: C does what needs every event or no GIL (hooks, the gate, parked
 * threads), Python (the files of agent/, run like the agent) decides and looks at objects.
 *
 * One session at a time, owned by one client of the control socket: its request DEBUG stays open
 * and carries events as items; DEBUG_CALL is a method of methods.def.  When the client goes, the
 * session ends: hooks out, all threads on.
 *
 * WORDS.  Gate: while it is armed, every Python thread that reaches a line, a call, a return from
 * native code or a backward jump parks.  Park: wait on a condition variable of ours, the GIL
 * released, inside the hook.  A parked thread can run calls itself, so that its thread-locals are
 * right.  Mechanism: how events are had from this CPython: monitoring (PEP 669, 3.12+) or frame
 * evaluation (PEP 523) with confined tracing (3.6-3.11).  No version is tested: what dlsym(3) and
 * the layout find decides.
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
};

struct prb_debug_place {
    enum prb_debug_event event;
    struct prb_py *frame; /* PyFrameObject, borrowed */
    struct prb_py *code;  /* borrowed */
    int line;             /* 0: not known */
    struct prb_py *value; /* borrowed or NULL; an exception is normalised, its __traceback__ as far
                             as it came */
    bool planted;         /* a line that plant() named; CALL: code that watch_new_code() tells of */
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
    /* Everything is given back, byte for byte; full speed again. */
    void (*end)(const struct prb_py_api *py);
    /* Lines of a code object to be told (LINE, planted); count 0: none any more.  Acts at once, in
     * frames that run or are suspended, too. */
    bool (*plant)(const struct prb_py_api *py, struct prb_py *code, const int *lines, size_t count);
    /* CALL, once for each code object that runs and was not told since this was switched on. */
    bool (*watch_new_code)(const struct prb_py_api *py, bool on);
    /* A mask of RAISE and UNWIND, everywhere. */
    bool (*watch_exceptions)(const struct prb_py_api *py, unsigned events);
    /* The events that are wanted of frames of one code object (LINE, RETURN, UNWIND, CALL of what
     * they call, JUMP), for stepping; 0: none any more.  Other threads' are left out by the core.
     */
    bool (*step)(const struct prb_py_api *py, struct prb_py *code, unsigned events);
    /* LINE, CALL, RESUME, JUMP of everything, all threads, those born later and those that come
     * back from native code included. */
    bool (*gate)(const struct prb_py_api *py, bool armed);
    /* In a child after fork(2), which may have no GIL: all that plain stores can take out; end()
     * follows when Python code reaches the rest.  NULL: nothing. */
    void (*forked)(void);
};
extern const struct prb_debug_mechanism prb_debug_monitoring, prb_debug_evaluation;

/* ---- the session (session.c, gate.c, request.c) ---- */

/* In a child after fork(2): no session, the hooks of this process out without any call. */
void prb_debug_forked(void);
/* The probe detaches, or the interpreter ends: as if the client had gone. */
void prb_debug_end(void);

/*
 * ---- how the Python is loaded ----
 *
 * The part "agent" (python/sources.h) is executed in a dict of its own, that has
 *   __name__        "probing_debug"
 *   __builtins__    as for the agent
 *   ENGINE          a dict: the functions below
 *   PARTS           a dict: name -> source (bytes), all of the debugger's
 *   AGENT           the namespace of python/agent.py (its part(), show(), complete(), ...)
 *   STAY, CODES, RUN  as for the agent
 * and C then takes call, happened, parked, resumed and close out of it.
 *
 * ---- what Python gets: ENGINE, builtin functions ----
 *
 *   emit(bytes, important=True)   one event, JSON; never blocks.  When the client is slow, what is
 * not important is left out, with a count; if it stays so, the client is dropped plant(code, lines)
 * lines: tuple of int watch_new_code(on), watch_exceptions(mask), step(ident, code, events),
 * gate(armed) parked()                      [(ident, native id, frame, reason)] of the threads that
 * are parked resume(ident)                 one parked thread on; 0: all, and the gate opens
 *   pending(exception)               whether one that was caught is of a signal handler of the
 * program's; this thread's next step in the program raises it then, where it is in a hook
 *   Interrupted                   the class of what ends code that does not end by itself
 *   breathe()                     let others have the GIL: what takes longer than 0.5 ms calls it
 * now and then found(event, frame, line, value)  an event that Python itself came upon, on its
 * thread: happened() is asked, it may park native_id(ident)              gettid(2) of a thread with
 * a Python thread state, 0: not known save_locals(frame)            PyFrame_LocalsToFast where
 * CPython needs it (nothing from 3.13 on) mechanism                     its name, a str; "" when
 * this CPython has none: without, a str, says why
 *
 * ---- what C calls, with the GIL, on the thread it happened on; its exceptions are told as output
 * ----
 *
 *   call(method, arguments: bytes) -> bytes       a DEBUG_CALL; JSON both, methods.def.  An
 * exception fails the request: its str is the text, its attribute code (an int, enum prb_code) the
 * code happened(event, frame, code, line, value, planted) -> reason to park (str), or None to go on
 *                                                 A reason arms the gate; resume is for threads
 * that parked() was told of. Asked first for planted lines and steps while the gate is armed, too;
 *                                                 None then parks by the gate.
 *   parked(ident, frame, reason)                  told on that thread when engine parked() has it
 * and calls can run on it
 *                                                 ("stopped" is emitted here); not of threads that
 * only the gate stops forget(ident)                                 a signal handler of the
 * program's ended happened(): there is no stop close()                                       the
 * session ended: drop every reference
 *
 * A generator that was suspended when new code began to be watched: its RESUME counts as its CALL.
 */

#endif
