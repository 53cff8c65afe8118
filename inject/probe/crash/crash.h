/*
 * The crash handler: what happens in the target between a fatal signal and its default action.
 *
 * The handler itself does next to nothing: it fills a record (record.h), starts the `probing`
 * program as a child that shares its memory until it executes, and waits for it, bounded, on an
 * alternate stack.  The program stops the other threads, decodes the process from outside as it
 * decodes any (heap, stack and GIL of the process may be in any state), and writes the dump.  Then
 * the signal goes to whose it was before us.  Where no program can be started the handler writes a
 * short text by itself.
 *
 * Everything behind the handler is async-signal-safe: raw system calls, static memory, no lock.
 */
#ifndef PRB_PROBE_CRASH_H
#define PRB_PROBE_CRASH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "crash/record.h"

#define PRB_CRASH_DUMPS_MAX 16 /* of one process: exceptions may go on for ever */

/* ---- while all is well (arm.c, stack.c) ---- */

/* Follow the settings probing.crash…: take the signals, or give them back.  Any thread. */
void prb_crash_configure(void);
/* Give back the signals, where nobody took them after us. */
void prb_crash_end(void);
/* In a child after fork(2): its dumps are its own. */
void prb_crash_forked(void);
/* An alternate stack for the calling thread, unless it has one, given back when the thread ends. */
bool prb_crash_stack(void);
bool prb_crash_is_on(void);
/* Others took the signals after us, and do not hand on: come before them. */
void prb_crash_take_again(void);
/* The Python side, in or out, by a job of its own; waits so long for it.  Without the GIL. */
void prb_crash_python(bool on, uint32_t wait_ms);
struct prb_py_api;
/* Its hooks out, with the GIL. */
void prb_crash_python_detach(const struct prb_py_api *py);
void prb_crash_python_forked(void);
/* memory.c: dump when the control group has nearly no memory left.  In a child after fork(2) nobody
 * watches. */
void prb_crash_watch_memory(bool on);
void prb_crash_memory_forked(void);
/* What the handler uses, made before. */
struct prb_crash_plan {
    char program[512], folder[PRB_CRASH_FOLDER_MAX]; /* folder "": the default one */
    char rank[24];                                   /* "-rank3", or "" */
    char *const *environment;
    uint64_t dump_bytes, folder_bytes, wait_ns, hold_ns;
    bool name_tracer; /* Yama lets only those look that the process names */
};
extern struct prb_crash_plan prb_crash_plan;
/* Make it, also while crash handling is off: program and environment.  Any thread. */
void prb_crash_plan_make(void);

/* ---- when it crashes ---- */

/* Dump this process for one reason; info and context may be NULL.  False: another thread is at it
 * (it was waited for), there were too many, or it failed. */
bool prb_crash_dump(enum prb_crash_kind kind, int signal, const siginfo_t *info,
                    const void *context, const char *reason);
/* For a debugger, until the time of probing.crash_hold is over, or it is set to 0.  A dump of a
 * signal does so itself. */
void prb_crash_hold(void);
void prb_crash_on_signal(int signal, siginfo_t *info, void *context);
/* The action that a signal had before ours; NULL: we do not handle it. */
const struct sigaction *prb_crash_previous(int signal);
/* Once in a process for each signal: whoever hands on to us again gets the default action. */
bool prb_crash_may_hand_on(int signal);

/* Start the writer and wait for it.  False: there is no dump. */
bool prb_crash_write(struct prb_crash_record *record);
/* The text that the handler writes where no program could: its name ends in .txt. */
void prb_crash_note(const struct prb_crash_record *record);
/* Write to standard error that this process is held for so long, for whom, and how it goes on. */
void prb_crash_say_held(uint64_t ns);

/* ---- small things without libc's state (raw_text.c) ---- */

struct prb_crash_text {
    char *at, *end; /* what does not fit is left out */
};
void prb_crash_add(struct prb_crash_text *text, const char *word);
void prb_crash_add_number(struct prb_crash_text *text, uint64_t number, unsigned base,
                          unsigned digits);
/* 20261122T013000Z */
void prb_crash_add_time(struct prb_crash_text *text, int64_t seconds);
uint64_t prb_crash_now(void); /* ns, monotonic */

#endif
