/*
 * Running Python code in the process that we are in, from threads that are no Python threads.
 *
 * A job has two threads of its own: one takes the GIL and runs the code, and may be left behind;
 * the other has its deadlines.  Nobody else ever waits for the GIL.  The interpreter's functions
 * are found by dlsym(3) when first needed, so that libprobe loads into any process.
 */
#ifndef PRB_PROBE_PYTHON_H
#define PRB_PROBE_PYTHON_H

#include "base/error.h"

#define PRB_PYTHON_JOBS_MAX 8             /* at a time, those left behind included */
#define PRB_PYTHON_OUTPUT_MAX (32u << 20) /* bytes of one evaluation; the rest is counted */
#define PRB_PYTHON_TEXT_MAX (256u << 10)  /* bytes of a result or traceback */

enum prb_python_kind {
    PRB_PYTHON_EVAL,
    PRB_PYTHON_COMPLETE,
    PRB_PYTHON_DEBUG, /* source: arguments; name_space: the method; thread: a parked one runs it */
};

/* Texts are copied. */
struct prb_python_request {
    enum prb_python_kind kind;
    const char *source; /* UTF-8 or not: then that is the code's error */
    size_t source_len;
    const char *name_space; /* NULL: __main__'s, "": a fresh one, else one that lives on */
    uint64_t thread;        /* Python ident or native id whose frame's names are used; 0: none */
    uint32_t frame;         /* 0 innermost */
    bool single;            /* as the interactive interpreter does */
    uint32_t cursor;        /* COMPLETE: bytes of source before it */
    uint32_t gil_ms;        /* 0: 1000 */
    uint32_t time_ms;       /* for the code, 0: none */
};

struct prb_python_result {
    bool raised;      /* text is the traceback */
    bool incomplete;  /* single: more lines are needed */
    bool none;        /* no value to show */
    const char *text; /* UTF-8; COMPLETE: one name a line */
    size_t len;
    uint64_t microseconds; /* with the GIL */
};

/* Called on threads of the job, one call after the other, never with the GIL.  Exactly one of done
 * and failed is the last.  failed: TIMEOUT with the GIL not got, or code that does not end; GONE:
 * the interpreter ends; NOT_PYTHON: none found; PERMISSION: switched off by the program's user;
 * NOT_FOUND: no such thread or frame. */
struct prb_python_sink {
    bool (*output)(void *context, int stream, const char *text,
                   size_t len); /* false: nobody listens: cancel */
    void (*done)(void *context, const struct prb_python_result *result);
    void (*failed)(void *context, const struct prb_error *err);
    void *context;
};

struct prb_python_job;

/* Start it; the caller releases what it gets.  The sink may be called before this returns.  BUSY:
 * too many. */
struct prb_python_job *prb_python_start(const struct prb_python_request *request,
                                        const struct prb_python_sink *sink, struct prb_error *err);
/* Interrupt its code (KeyboardInterrupt, again until it ends).  The answer comes through the sink.
 */
void prb_python_cancel(struct prb_python_job *job);
void prb_python_release(struct prb_python_job *job);

/* Jobs that have not answered yet. */
unsigned prb_python_running(void);
/* Cancel all jobs, and take everything out of the interpreter again, under the GIL; waits at most
 * that long. */
bool prb_python_detach(uint32_t wait_ms, struct prb_error *err);
/* In a child after fork(2), from pthread_atfork(3): none of the threads exists here. */
void prb_python_forked(void);

#endif
