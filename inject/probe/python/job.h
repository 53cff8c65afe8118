/*
 * A job, between the thread that watches it (watch.c) and the one that runs it (job.c). Lock order: the GIL, then a job's lock; who holds a job's lock never asks for
 * the GIL.
 */
#ifndef PRB_PROBE_PYTHON_JOB_H
#define PRB_PROBE_PYTHON_JOB_H

#include <pthread.h>

#include "base/buf.h"
#include "base/clock.h"
#include "inject/probe/python/api.h"
#include "inject/probe/python/python.h"

#define PRB_PYTHON_WAITING_MAX (1u << 20) /* bytes of output that wait for the client */

enum prb_job_phase { PRB_JOB_WAITING, PRB_JOB_RUNNING, PRB_JOB_ENDED };
enum prb_job_stop { PRB_JOB_GO_ON, PRB_JOB_CANCELLED, PRB_JOB_OVERDUE, PRB_JOB_CLOSING };

struct prb_python_job {
    unsigned references;
    struct prb_python_request request;
    struct prb_python_sink sink;
    struct prb_python_job *next;
    struct prb_python_job *handed; /* the next of those that a parked thread is to run */
    pid_t process;                 /* the code may fork: what its child does is not this job's */

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    enum prb_job_phase phase;
    enum prb_job_stop stop;
    bool abandoned; /* answered with left: what it still does is for nobody */
    struct prb_error left;
    bool interruptible;
    bool urgent;         /* the switch interval is short for it */
    unsigned long ident; /* Python's, of the thread that runs it */
    uint64_t started;    /* ns, when it got the GIL */
    char where[256];     /* it stands there although it was interrupted */
    struct {
        uint64_t until; /* ns, for the repr() that runs; 0: none does */
        bool watched;   /* such calls may come: the watcher looks in between */
        bool overdue;   /* it is to end */
        bool sent;      /* an interruption, which may not have been raised yet */
    } repr;

    bool draining;         /* one thread hands output on, the lock free */
    struct prb_buf output; /* pieces, each behind a struct prb_job_piece */
    size_t last_piece;     /* offset */
    uint64_t output_total, output_dropped;

    /* By the worker, read when it has ended. */
    bool failed, interrupted;
    struct prb_error failure;
    struct prb_python_result result;
    char *text;
};

struct prb_job_piece {
    uint32_t stream, len;
};

/* Wait for job->changed, its lock held; false at the time (ns, 0: none). */
bool prb_job_wait(struct prb_python_job *job, uint64_t until);
void prb_job_hold(struct prb_python_job *job);
#define PRB_JOB_WORKER_STACK (8u << 20) /* Python's recursion limit supposes about that */
/* A detached thread with all signals blocked and a reference to the job. */
bool prb_job_spawn(struct prb_python_job *job, void *(*body)(void *), size_t stack);
/* The one answer, by who found that there was none. */
void prb_job_answer(struct prb_python_job *job);
/* The answer is job->left; the lock is held. */
void prb_job_leave_behind(struct prb_python_job *job);
/* Whether its answer has been given and its code runs on; NULL: no. */
bool prb_job_is_left_behind(struct prb_python_job *job);
/* The thread that hands output on and has the deadlines. */
void *prb_job_watch(void *job);
/* Stop all jobs, refuse new ones meanwhile (CLOSING: for good), and wait until none runs or the
 * time is over. */
void prb_job_stop_all(enum prb_job_stop why, uint64_t wait_ms);
/* Hand on to the sink what waits; the job's lock is held, but free meanwhile. */
void prb_job_drain(struct prb_python_job *job);
#define PRB_JOB_MS 1000000u /* ns */

/* Output of the code, by the thread that runs it, with the GIL; waits without it when the client is
 * slow. */
void prb_job_write(struct prb_python_job *job, const struct prb_py_api *py, int stream,
                   const char *text, size_t len);

/* Do a job on this thread, which takes the GIL for it, and answer. */
void prb_job_work(struct prb_python_job *job);
/* With the GIL: call it; interruptions come meanwhile and at no other time.  A new reference, or
 * NULL with the exception set. */
struct prb_py *prb_job_run(struct prb_python_job *job, const struct prb_py_api *py,
                           struct prb_py *callable, struct prb_py *args);
/*
 * repr(value) in a call of prb_job_run, for at most so long (ms, 0: no limit): then it is
 * interrupted, and the result is None.  A new reference, or NULL with the exception set.  One that
 * does not end even so has the job left behind: PRB_TIMEOUT.
 */
struct prb_py *prb_job_repr(const struct prb_py_api *py, struct prb_py *value, uint32_t limit_ms);
/* The job that runs on this thread, held, or NULL. */
struct prb_python_job *prb_job_here(const struct prb_py_api *py);
/*
 * With the GIL, on the thread of that number: an interruption that may still be pending is not
 * raised later.  What a handler of the program raises meanwhile is set afterwards, in place of what
 * was set before.  PyThreadState_SetAsyncExc(NULL) alone would leave the word set that has each
 * thread look for it, which only raising it resets (Python/ceval_gil.c, UNSIGNAL_ASYNC_EXC): the
 * program would run slower for good, and a traced function of 3.11 would never get beyond its first
 * instruction.
 */
void prb_py_withdraw(const struct prb_py_api *py, unsigned long ident);
/* This thread has acquired the GIL for work of ours; it is about to release it. */
void prb_py_gil_acquired(const struct prb_py_api *py);
void prb_py_gil_releasing(const struct prb_py_api *py);
/* When it has had the GIL for a moment, let other threads have it: no step of the program waits
 * long. */
void prb_py_yield_gil(const struct prb_py_api *py);
struct prb_py_source;
/* Execute a source of ours in a namespace, statement by statement; other
 * threads run in between, as compiling it whole would keep the GIL for milliseconds.  False: an exception is set. */
bool prb_py_run(const struct prb_py_api *py, const struct prb_py_source *source,
                struct prb_py *space);
/* run(file, space), by the name of a source's file: the same for Python code of ours. */
extern struct prb_py_method prb_py_run_method;
/* The exception that is set, cleared, as text (bytes of UTF-8, never NULL) for a message. */
const char *prb_py_raised(const struct prb_py_api *py, char *out, size_t size);
/* Fail with that text: "DOING failed in the target: …". */
bool prb_py_fail_raised(const struct prb_py_api *py, const char *doing, struct prb_error *err);
/* The namespace of agent.py, loaded when it is not; a new reference. */
struct prb_py *prb_job_agent(const struct prb_py_api *py, struct prb_error *err);
/* The job of a detach: all out of the interpreter. */
extern const struct prb_python_work prb_python_detach_work;
/* With the GIL: where its code stands, into job->where. */
void prb_job_locate(struct prb_python_job *job, const struct prb_py_api *py);
/* In a child after fork(2): the agent is the parent's. */
void prb_job_call_forked(void);
/* The interpreter begins to end: refuse what is new, interrupt what runs, and wait for it a moment,
 * without the GIL. */
void prb_job_closing(void);

#endif
