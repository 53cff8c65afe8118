/*
 * The mechanism "monitoring", between what it sets in sys.monitoring (monitoring.c) and what
 * CPython calls (hooks.c).  Two tool ids: the planter's events disable themselves
 * wherever no line is planted and cost nothing then; the stepper's (gate, steps, exceptions) do
 * so for CALL alone, and are on only while somebody waits for them.
 */
#ifndef PRB_PROBE_DEBUG_MONITORING_MONITORING_H
#define PRB_PROBE_DEBUG_MONITORING_MONITORING_H

#include "inject/probe/debug/session.h"

enum prb_tool { PRB_PLANTER, PRB_STEPPER, PRB_TOOLS };

/* name in sys.monitoring.events, what it is to the core, whether set_local_events refuses it
 * (PEP 669) */
#define PRB_MONITORING_EVENTS(E)                                                                   \
    E(LINE, PRB_DEBUG_LINE, false)                                                                 \
    E(PY_START, PRB_DEBUG_CALL, false)                                                             \
    E(PY_RESUME, PRB_DEBUG_RESUME, false)                                                          \
    E(PY_THROW, PRB_DEBUG_RESUME, true)                                                            \
    E(JUMP, PRB_DEBUG_JUMP, false)                                                                 \
    E(CALL, PRB_DEBUG_CALLEE, false)                                                               \
    E(PY_RETURN, PRB_DEBUG_RETURN, false)                                                          \
    E(PY_YIELD, PRB_DEBUG_RETURN, false)                                                           \
    E(RAISE, PRB_DEBUG_RAISE, true)                                                                \
    E(PY_UNWIND, PRB_DEBUG_UNWIND, true)

enum prb_monitoring_event {
#define E(name, event, global_only) PRB_MONITORING_##name,
    PRB_MONITORING_EVENTS(E)
#undef E
        PRB_MONITORING_COUNT
};

/* Code whose events are on: lines for the planter, a mask of enum prb_debug_event for the stepper.
 */
struct prb_watched {
    struct prb_py *code;
    int *lines; /* ascending */
    size_t count;
    unsigned events;
};

/* All with the GIL. */
struct prb_monitoring {
    struct prb_py *module; /* sys.monitoring; NULL: not begun */
    struct prb_py *disable;
    int ids[PRB_TOOLS];
    int global[PRB_TOOLS]; /* CPython's masks, as they are set */
    long numbers[PRB_MONITORING_COUNT];
    struct prb_watched *watched[PRB_TOOLS];
    size_t count[PRB_TOOLS], cap[PRB_TOOLS];
    bool armed;
    unsigned exceptions;
};
extern struct prb_monitoring prb_monitoring;

/* NULL: not watched. */
struct prb_watched *prb_monitoring_find(enum prb_tool tool, const struct prb_py *code);

/* What CPython calls for an event of a tool; the last has no method. */
struct prb_monitoring_hook {
    enum prb_tool tool;
    enum prb_monitoring_event event;
    struct prb_py_method method;
    struct prb_py *function; /* for ever: CPython uses it borrowed while a thread is parked in it */
};
extern struct prb_monitoring_hook prb_monitoring_hooks[];

#endif
