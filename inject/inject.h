/*
 * Getting in: one parked thread of the target is sent through a stub that makes a new thread,
 * and that thread loads a library (the probe).  Nothing else of the target is stopped or
 * overwritten. Method and measurements: inject/README part of the tree's README, "How it gets
 * in".
 */
#ifndef PRB_INJECT_INJECT_H
#define PRB_INJECT_INJECT_H

#include "probing.h"

enum prb_inject_method {
    PRB_INJECT_AUTO,        /* THREAD, and REMOTE_EXEC where that cannot be */
    PRB_INJECT_THREAD,      /* a parked thread, ptrace(2) */
    PRB_INJECT_REMOTE_EXEC, /* CPython 3.14's own door, PEP 768 */
};

struct prb_inject_options {
    enum prb_inject_method method;
    const char *library;  /* --dll; NULL: libprobe.so beside libprobing.so or in the package */
    const char *settings; /* lines "key=value" for the probe, or NULL */
    bool force;           /* although the target is no Python */
    double wait;          /* s for a safe thread; 0: 2 */
};

struct prb_inject_report {
    bool already;         /* a probe was there; nothing was done but a handshake */
    bool will_load_later; /* the target is stopped: it loads when it goes on */
    enum prb_inject_method method;
    double total_ms;
    double paused_us; /* from the thread's stop until it goes back to its own call */
    /* the thread that was paused, in the caller's pid namespace; 0: none */
    pid_t tid;
    unsigned tries;
};

/* The path of libprobe.so that prb_inject takes by itself; for `launch` (LD_PRELOAD).
 * NOT_FOUND. */
PRB_API bool prb_inject_library(char *path, size_t size, struct prb_error *err);

/* Load it.  Every refusal comes before the target is touched: one cause in err->text, one
 * remedy. */
PRB_API bool prb_inject(pid_t pid, const struct prb_inject_options *options,
                        struct prb_inject_report *report, struct prb_error *err);

/* A connection to the probe of a process, as prb_control_open gives it.  Where there is none it is
 * loaded first, unless PROBING_AUTO_INJECT is off (0, no, false) here or in the environment that
 * the process was started with.  For all commands and servers that need a probe and were not asked
 * to load one; report->already: it was there.  Errors: those of prb_control_open and prb_inject;
 * NOT_FOUND: it may not be loaded; BUSY: the process is stopped, and loads it when it continues. */
struct prb_control;
PRB_API struct prb_control *prb_ensure_probe(pid_t pid, struct prb_inject_report *report,
                                             struct prb_error *err) PRB_MUST_CHECK;

#endif
