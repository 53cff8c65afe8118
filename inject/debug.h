/*
 * A debug session in a process with a probe (inject/probe/debug/debug.h).  Events come at any time,
 * calls may overlap.  One session a process; it ends with prb_debug_close or with this process, and
 * the target is then as before.
 */
#ifndef PRB_INJECT_DEBUG_H
#define PRB_INJECT_DEBUG_H

#include "probing.h"

struct prb_debug;
struct prb_bytecode;
struct prb_control;

struct prb_debug_options {
    /* An event, JSON text {"event": name, "body": {...}}, on a thread of the library's; never two
     * at once. */
    void (*event)(void *context, const char *text, size_t len);
    /* The session ended by itself; err is GONE, the target. */
    void (*ended)(void *context, const struct prb_error *err);
    void *context;
    struct prb_control *control;   /* open; owned from now on, also on failure; NULL: opened */
    struct prb_bytecode *bytecode; /* see bytecode.h; borrowed; NULL: the target compiles */
};

/* BUSY: it is being debugged already; the text says by whom.  NOT_FOUND: it has no probe. */
PRB_API struct prb_debug *prb_debug_open(pid_t pid, const struct prb_debug_options *options,
                                         struct prb_error *err) PRB_MUST_CHECK;
/* Remove all hooks and continue all threads; waits for it, a second at most. */
PRB_API void prb_debug_close(struct prb_debug *debug);

struct prb_debug_call {
    const char *method;    /* of inject/probe/debug/methods.def */
    const char *arguments; /* JSON text */
    size_t arguments_len;
    pid_t thread;       /* that runs it, when it is parked; 0: any */
    double gil_timeout; /* s; 0: 1 */
    double timeout;     /* s; 0: none */
    bool (*cancelled)(void *context);
    void *context;
};
/* From any thread, several at a time.  *result_out: JSON text, freed by the caller. */
PRB_API bool prb_debug_call(struct prb_debug *debug, const struct prb_debug_call *call,
                            char **result_out, size_t *len_out,
                            struct prb_error *err) PRB_MUST_CHECK;

#endif
