/*
 * Threads of the program that park: each waits on a condition of its own, the GIL released, and
 * runs the jobs that are handed to it meanwhile.
 */
#include "inject/probe/debug/session.h"

#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "inject/probe/libc.h"

#define REPORT_MAX 4        /* times, when signal handlers come between */
#define DESCRIPTOR_MAX 4096 /* bytes of glibc's struct pthread that are looked through */

static struct prb_debug_session *const session = &prb_debug_session;

static pid_t own_tid(void) { return (pid_t)syscall(SYS_gettid); }

struct prb_debug_parked *prb_debug_enter(const struct prb_py_api *py,
                                         const struct prb_debug_place *place, unsigned long ident)
{
    struct prb_debug_parked *parked = calloc(1, sizeof *parked);
    if (!parked)
        return NULL;
    parked->ident = ident;
    parked->frame = place->frame;
    if (parked->frame)
        py->Py_IncRef(parked->frame);
    prb_clock_cond_init(&parked->changed);
    pthread_mutex_lock(&session->lock);
    parked->next = session->parked;
    session->parked = parked;
    pthread_mutex_unlock(&session->lock);
    return parked;
}

static void forget(struct prb_debug_parked *parked)
{
    for (struct prb_debug_parked **link = &session->parked; *link; link = &(*link)->next)
        if (*link == parked) {
            *link = parked->next;
            return;
        }
}

/* Report the stop to the client; again when a signal handler of the program ended the call. */
static void report(const struct prb_py_api *py, struct prb_debug_parked *parked)
{
    PRB_AUTO(prb_py) struct prb_py *ident = py->PyLong_FromUnsignedLongLong(parked->ident);
    struct prb_py *frame = parked->frame ? parked->frame : py->none;
    bool again = ident && parked->reason && session->report_parked;
    for (int i = 0; again && i < REPORT_MAX; i++) {
        unsigned before = parked->pending_count;
        parked->emitted = false;
        PRB_AUTO(prb_py)
        struct prb_py *result = prb_debug_call_agent(
            py, parked, session->report_parked, py->PyTuple_Pack(3, ident, frame, parked->reason));
        again = !result && parked->pending_count != before && !parked->emitted;
    }
}

/* Wait until it may go on.  With the lock, without the GIL. */
static void wait(struct prb_debug_parked *parked)
{
    while (parked->jobs || !parked->resume) {
        struct prb_python_job *job = parked->jobs;
        if (!job) {
            pthread_cond_wait(&parked->changed, &session->lock);
            continue;
        }
        parked->jobs = job->handed;
        prb_job_hold(job);
        parked->runs = job;
        pthread_mutex_unlock(&session->lock);
        prb_job_work(job);
        pthread_mutex_lock(&session->lock);
        parked->runs = NULL;
        prb_python_release(job);
    }
    forget(parked); /* before the GIL is asked for: at the interpreter's end it never comes */
}

/* With the lock: whether it is to park. */
static bool settle(struct prb_debug_parked *parked, bool gated)
{
    if (session->state != PRB_DEBUG_OPEN || parked->resume ||
        !(parked->reason || (gated && session->armed)))
        return false;
    parked->tid = own_tid();
    parked->waits = true;
    return true;
}

bool prb_debug_stay(const struct prb_py_api *py, struct prb_debug_parked *parked,
                    struct prb_py *reason, bool gated)
{
    parked->reason = reason;
    if (reason && session->state == PRB_DEBUG_OPEN)
        prb_debug_close_gate(py); /* somebody may have opened it while the agent decided */
    pthread_mutex_lock(&session->lock);
    bool stays = settle(parked, gated);
    if (!stays)
        forget(parked);
    pthread_mutex_unlock(&session->lock);
    if (stays) {
        report(py, parked);
        void *saved = py->PyEval_SaveThread();
        pthread_mutex_lock(&session->lock);
        wait(parked);
        pthread_mutex_unlock(&session->lock);
        py->PyEval_RestoreThread(saved);
    }
    bool ok = prb_debug_raise_pending(py, parked);
    prb_py_drop(parked->frame);
    prb_py_drop(parked->reason);
    pthread_cond_destroy(&parked->changed);
    free(parked);
    return ok;
}

struct prb_debug_parked *prb_debug_here(const struct prb_py_api *py)
{
    unsigned long ident = py->PyThread_get_thread_ident();
    pthread_mutex_lock(&session->lock);
    struct prb_debug_parked *parked = session->parked;
    while (parked && parked->ident != ident)
        parked = parked->next;
    pthread_mutex_unlock(&session->lock);
    return parked;
}

void prb_debug_let_go(unsigned long ident, bool only_gated)
{
    pthread_mutex_lock(&session->lock);
    for (struct prb_debug_parked *parked = session->parked; parked; parked = parked->next) {
        if (!parked->waits || (ident && parked->ident != ident) || (only_gated && parked->reason))
            continue;
        parked->resume = true;
        pthread_cond_signal(&parked->changed);
    }
    pthread_mutex_unlock(&session->lock);
}

void prb_debug_interrupt(const struct prb_py_api *py)
{
    pthread_mutex_lock(&session->lock);
    for (struct prb_debug_parked *parked = session->parked; parked; parked = parked->next)
        if (parked->asked) {
            parked->interrupted = true;
            py->PyThreadState_SetAsyncExc(parked->ident, prb_py_interruption(py));
        }
    pthread_mutex_unlock(&session->lock);
}

/* ---- the list for Python ---- */

static struct prb_py *describe(const struct prb_py_api *py, const struct prb_debug_parked *parked)
{
    PRB_AUTO(prb_py) struct prb_py *ident = py->PyLong_FromUnsignedLongLong(parked->ident);
    PRB_AUTO(prb_py) struct prb_py *tid = py->PyLong_FromLong(parked->tid);
    if (!ident || !tid)
        return NULL;
    return py->PyTuple_Pack(4, ident, tid, parked->frame ? parked->frame : py->none,
                            parked->reason ? parked->reason : py->none);
}

/* The list may change while the GIL is free; the objects in it may not.  Take references under the
 * lock, and build Python objects after unlocking: an allocation may run the collector, and so any
 * code. */
struct prb_py *prb_debug_parked_list(const struct prb_py_api *py)
{
    PRB_AUTO(prb_py) struct prb_py *list = py->PyList_New(0);
    unsigned count = 0;
    pthread_mutex_lock(&session->lock);
    for (const struct prb_debug_parked *parked = session->parked; parked; parked = parked->next)
        count += parked->waits;
    PRB_AUTO_FREE struct prb_debug_parked *copies = calloc(count + 1u, sizeof *copies);
    count = 0;
    for (const struct prb_debug_parked *parked = session->parked; copies && parked;
         parked = parked->next)
        if (parked->waits) {
            copies[count] = *parked;
            if (parked->frame)
                py->Py_IncRef(parked->frame);
            if (parked->reason)
                py->Py_IncRef(parked->reason);
            count++;
        }
    pthread_mutex_unlock(&session->lock);
    bool ok = list && copies;
    for (unsigned i = 0; i < count; i++) {
        PRB_AUTO(prb_py) struct prb_py *one = ok ? describe(py, &copies[i]) : NULL;
        ok = one && py->PyList_Append(list, one) == 0;
        prb_py_drop(copies[i].frame);
        prb_py_drop(copies[i].reason);
    }
    return ok ? PRB_STEAL(list) : NULL;
}

/* ---- thread ids ---- */

static bool read_own(unsigned long address, void *out, size_t size)
{
    struct iovec to = {out, size}, from = {(void *)address, size};
    return syscall(SYS_process_vm_readv, (long)getpid(), &to, 1L, &from, 1L, 0L) == (long)size;
}

/* Where the kernel's number of a thread lies in the C library's descriptor of it; 0: not found. The
 * main thread's is the process's, too, and that may lie there as well. */
static size_t number_offset(void)
{
    static atomic_size_t known; /* the same in all threads: found once */
    size_t found = known;
    pid_t mine = own_tid(), word;
    unsigned long self = (unsigned long)pthread_self();
    for (size_t at = sizeof word; !found && mine != getpid() && at < DESCRIPTOR_MAX;
         at += sizeof word) {
        if (!read_own(self + at, &word, sizeof word))
            break;
        if (word == mine)
            known = found = at;
    }
    return found;
}

/* An ident is the address of that descriptor. */
pid_t prb_debug_native_id(unsigned long ident)
{
    pid_t found = 0;
    if (ident == (unsigned long)pthread_self())
        return own_tid();
    size_t at = number_offset();
    return at && read_own(ident + at, &found, sizeof found) && found > 0 ? found : 0;
}
