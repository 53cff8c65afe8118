/*
 * Loading a library (the probe) into a process.  One parked thread of the target is sent through a
 * stub that makes a new thread, which loads the library.  Nothing else of the target is stopped or
 * overwritten.  See inject/README.md.
 */
#ifndef PRB_INJECT_INJECT_H
#define PRB_INJECT_INJECT_H

#include "probing.h"

enum prb_inject_method {
    PRB_INJECT_AUTO,        /* THREAD, else REMOTE_EXEC */
    PRB_INJECT_THREAD,      /* a parked thread, ptrace(2) */
    PRB_INJECT_REMOTE_EXEC, /* remote debugging of CPython 3.14 and later, PEP 768 */
};

struct prb_inject_options {
    enum prb_inject_method method;
    const char *library;  /* --dll; NULL: libprobe.so beside libprobing.so or in the package */
    const char *settings; /* lines "key=value" for the probe, or NULL */
    bool force;           /* also when the target is not Python */
    double wait;          /* s for a safe thread; 0: 2 */
};

struct prb_inject_report {
    bool already;         /* a probe was loaded already; we only checked that it answers */
    bool will_load_later; /* the target is stopped: it loads the library when it continues */
    enum prb_inject_method method;
    double total_ms;
    double paused_us; /* from the thread's stop until it returns to its own call */
    /* the thread that was paused, in the caller's pid namespace; 0: none */
    pid_t tid;
    unsigned tries;
};

/* The path of the libprobe.so that prb_inject loads by default; for `launch` (LD_PRELOAD).
 * Errors: NOT_FOUND; UNSUPPORTED: this build has none. */
PRB_API bool prb_inject_library(char *path, size_t size, struct prb_error *err);

/* Load the library.  What is refused is refused before the target is touched, with one cause in
 * err->text and one remedy. */
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
