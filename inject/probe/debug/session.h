/*
 * The session's inside (debug.h), between its life (session.c), parked threads (gate.c), the
 * functions for its Python (engine.c) and the requests (request.c).
 *
 * What is marked GIL is read and written with the GIL only; the rest with the lock.
 */
#ifndef PRB_PROBE_DEBUG_SESSION_H
#define PRB_PROBE_DEBUG_SESSION_H

#include <stdatomic.h>

#include "inject/probe/debug/debug.h"
#include "inject/probe/python/job.h"

struct prb_request;

#define PRB_DEBUG_STEPS_MAX 256      /* pairs of thread and code that are stepped at a time */
#define PRB_DEBUG_DEEPER_MAX 1000000 /* RETURNs that are looked through for a step's own calls */
#define PRB_DEBUG_PASSES_MAX 256     /* threads that were let through a closed gate */
#define PRB_DEBUG_CONDITIONS_MAX 64  /* of breakpoints, that C evaluates */
#define PRB_DEBUG_GATE (PRB_DEBUG_LINE | PRB_DEBUG_CALL | PRB_DEBUG_RESUME | PRB_DEBUG_JUMP)

/* A thread of the program that is asked about, or parked.  On the heap: CPython may end a thread
 * that wants the GIL while the interpreter ends, and its stack with it. */
struct prb_debug_parked {
    struct prb_debug_parked *next;
    unsigned long ident;
    pid_t tid;
    struct prb_py *frame, *reason; /* reason NULL: the gate's */
    bool waits;              /* it is parked, or just before: it takes jobs, and may be let go */
    bool asked, interrupted; /* GIL; it is in happened(), and shall leave it */
    bool resume;
    struct prb_py *pending; /* GIL; an exception of the program's: pending_exception.c */
    unsigned pending_count; /* GIL; how often one came */
    bool emitted;           /* GIL; an important event, since this was cleared */
    pthread_cond_t changed;
    struct prb_python_job *jobs; /* it runs them, the first first */
    struct prb_python_job *runs; /* held; the one that it is at */
};

struct prb_debug_step {
    unsigned long ident;
    struct prb_py *code;
    unsigned events;
    struct prb_py *frame; /* RETURN is of this one and of what it called; NULL: of all */
    unsigned deeper;      /* RETURNs of calls further within */
};

/* GIL; the condition of the only breakpoint at a line. */
struct prb_debug_condition {
    struct prb_py *code;
    int line;
    struct prb_py *test;   /* its code object */
    struct prb_py *locals; /* (name, index, ...) of those that it names; NULL: the frame's dict */
};

enum prb_debug_state { PRB_DEBUG_NONE, PRB_DEBUG_OPEN, PRB_DEBUG_ENDING };

struct prb_debug_session {
    pthread_mutex_t lock;
    atomic_int state;            /* enum prb_debug_state; written with the lock */
    struct prb_request *request; /* DEBUG, held: where events go */
    struct prb_request *waiting; /* the next one's, while this one ends */
    char who[96];
    struct prb_debug_parked *parked;
    unsigned long dropped; /* events */

    bool loading, leaving; /* GIL */
    bool stale;            /* GIL; hooks of the process that this one was forked from are in */
    struct prb_py *space;  /* GIL; the namespace of agent/agent.py, and its functions */
    struct prb_py *call, *happened, *report_parked, *forget, *close;
    const struct prb_debug_mechanism *mechanism; /* GIL; NULL: this CPython has none */
    char without[360];                           /* why */
    atomic_bool armed;                           /* GIL and lock: the gate */
    unsigned exceptions;                         /* GIL; mask of watch_exceptions */
    unsigned step_count, pass_count;             /* GIL */
    struct prb_debug_step steps[PRB_DEBUG_STEPS_MAX];
    unsigned long passes[PRB_DEBUG_PASSES_MAX];
    unsigned condition_count; /* GIL */
    struct prb_debug_condition conditions[PRB_DEBUG_CONDITIONS_MAX];
};
extern struct prb_debug_session prb_debug_session;

/* ---- session.c ---- */

/* The session's Python, loaded when first needed.  With the GIL. */
bool prb_debug_load(const struct prb_py_api *py, struct prb_error *err);
/* Finish a session that is ending: take the hooks out, drop references, answer DEBUG.  Nothing when
 * none is ending.  With the GIL. */
void prb_debug_take_out(const struct prb_py_api *py);
/* Call a function of the agent with arguments that are taken; its exception is reported as output, or
 * kept when it is the program's.  parked: this thread's, or NULL.  A new reference or NULL. */
struct prb_py *prb_debug_call_agent(const struct prb_py_api *py, struct prb_debug_parked *parked,
                                    struct prb_py *function, struct prb_py *args);

/* An event that the agent itself came upon, on the thread it is of: as prb_debug_happened(), asked
 * whatever is watched. */
bool prb_debug_found(const struct prb_py_api *py, const struct prb_debug_place *place);

/* ---- engine.c ---- */

/* The dict probe.functions, a new reference. */
struct prb_py *prb_debug_functions(const struct prb_py_api *py);
/* The dict probe.methods: name of a method -> the file of agent/ that has it; a new reference. */
struct prb_py *prb_debug_methods(const struct prb_py_api *py);
/* The gate, closed when it is not; for a thread that parks for a reason. */
void prb_debug_close_gate(const struct prb_py_api *py);
/* An event for the client; important ones are not left out when it is slow. */
void prb_debug_emit(const char *text, size_t len, bool important);

/* ---- condition.c: with the GIL ---- */

/* False: the line's condition was evaluated, and is false.  judged_out: (its code object, the
 * exception that it raised or None), a new reference; NULL: it was not evaluated. */
bool prb_debug_judge(const struct prb_py_api *py, const struct prb_debug_place *place,
                     struct prb_py **judged_out);
/* False: there are too many. */
bool prb_debug_add_condition(const struct prb_py_api *py, struct prb_py *code, int line,
                             struct prb_py *test, struct prb_py *locals);
/* Of a code object; NULL: all. */
void prb_debug_drop_conditions(const struct prb_py *code);

/* ---- gate.c ---- */

struct prb_debug_parked *prb_debug_enter(const struct prb_py_api *py,
                                         const struct prb_debug_place *place, unsigned long ident);
/* Park when there is a reason (taken) or the gate is closed to the thread; then forget it.  False:
 * the exception that the program is pending is set. */
bool prb_debug_stay(const struct prb_py_api *py, struct prb_debug_parked *parked,
                    struct prb_py *reason, bool gated);
/* ident 0: all of them, only_gated: those without a reason. */
void prb_debug_let_go(unsigned long ident, bool only_gated);
/* Threads that are asked about are interrupted there: a condition may not end by itself. */
void prb_debug_interrupt(const struct prb_py_api *py);
/* [(ident, native id, frame, reason or None)], a new reference. */
struct prb_py *prb_debug_parked_list(const struct prb_py_api *py);
/* gettid(2) of a thread by its ident (pthread_self(3)); 0: not known. */
pid_t prb_debug_native_id(unsigned long ident);

/* This thread's, or NULL: it is in no hook. */
struct prb_debug_parked *prb_debug_here(const struct prb_py_api *py);

/* ---- pending_exception.c ---- */

/* Keep the exception that is set, when it is the program's; else it stays set, and false. escaped:
 * it came out of all our code. */
bool prb_debug_keep_raised(const struct prb_py_api *py, struct prb_debug_parked *parked,
                           bool escaped);
/* The same for one that Python code of ours caught; parked NULL: only say whose it is. */
bool prb_debug_keep_caught(const struct prb_py_api *py, struct prb_debug_parked *parked,
                           struct prb_py *value);
/* Run the handlers of signals that came, before code of ours does; what they raise is kept. */
void prb_debug_take_signals(const struct prb_py_api *py, struct prb_debug_parked *parked);
/* prb_py_withdraw(), and what the program's handlers raised meanwhile is kept. */
void prb_debug_withdraw(const struct prb_py_api *py, struct prb_debug_parked *parked);
/* Set what is kept as the exception: then false. */
bool prb_debug_raise_pending(const struct prb_py_api *py, struct prb_debug_parked *parked);
/* The exception that is set came while another one was on its way. */
void prb_debug_chain(const struct prb_py_api *py, struct prb_py *context);

/* ---- request.c ---- */

/* The session that waited for the end of the last one begins. */
void prb_debug_next(void);

#endif
