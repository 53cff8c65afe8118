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
#define PRB_PYTHON_TEXT_MAX (4u << 20)    /* bytes of a result */

struct prb_python_job;
struct prb_py_api;
struct prb_py;

/* What a job does: a constant of whoever starts such jobs. */
struct prb_python_work {
    /* With the GIL: do it and leave the result in the job (job.h).  False: err is the answer. */
    bool (*run)(struct prb_python_job *job, const struct prb_py_api *py, struct prb_error *err);
    /* Of the request's data.  NULL: it has none. */
    void (*release)(void *data);
    /* Offer the job to a thread of the program, which then calls prb_job_work().  False, or NULL: a
     * thread of the job's own runs it. */
    bool (*hand)(struct prb_python_job *job);
    /* The class of the exception that ends its code early, borrowed.  NULL: KeyboardInterrupt. */
    struct prb_py *(*interruption)(const struct prb_py_api *py);
    bool urgent; /* the switch interval is short while it waits for the GIL */
    bool always; /* it runs although nobody waits any more, and however many jobs there are */
};

struct prb_python_request {
    const struct prb_python_work *work;
    void *data;       /* the job's from now on, also when it cannot be started */
    uint32_t gil_ms;  /* 0: 1000 */
    uint32_t time_ms; /* for the code, 0: none */
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

/* Start it; the caller releases what it gets.  sink NULL: nobody wants the answer.  The sink may be
 * called before this returns.  BUSY: too many. */
struct prb_python_job *prb_python_start(const struct prb_python_request *request,
                                        const struct prb_python_sink *sink, struct prb_error *err);
/* Interrupt its code (KeyboardInterrupt, again until it ends).  The answer comes through the sink.
 */
void prb_python_cancel(struct prb_python_job *job);
void prb_python_release(struct prb_python_job *job);
/* Start a job and wait for its answer, at most so long (ms; PRB_PYTHON_ITS_OWN: until its own
 * deadlines), and 3 s more when it has begun by then.  False: it failed, or the time is over and
 * it goes on.  Never with the GIL. */
#define PRB_PYTHON_ITS_OWN UINT32_MAX
bool prb_python_wait(const struct prb_python_request *request, uint32_t wait_ms,
                     struct prb_error *err);

/* Jobs that have not answered yet. */
unsigned prb_python_running(void);
/* Cancel all jobs, and take everything out of the interpreter again, under the GIL; waits at most
 * that long. */
bool prb_python_detach(uint32_t wait_ms, struct prb_error *err);
/* In a child after fork(2), from pthread_atfork(3): none of the threads exists here. */
void prb_python_forked(void);

#endif
