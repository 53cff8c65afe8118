/* What is kept of each thread that PyTorch's hooks meet: found by a pthread key, freed at its end. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "inject/probe/torch/torch.h"

struct prb_torch_threads prb_torch_threads;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Calls free(3) and does not name it: who takes its address gets, in a program at fixed addresses, one
 * of that program's, and the hooks of allocations would know no other (memory/libraries.c). */
static void end_thread(void *thread) { free(thread); }

static void make_key(void)
{
    atomic_store(&prb_torch_threads.ready,
                 pthread_key_create(&prb_torch_threads.key, end_thread) == 0);
}

static struct prb_torch_thread *make_thread(void)
{
    struct prb_torch_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return NULL;
    thread->tid = syscall(SYS_gettid);
    thread->since = prb_clock_ns();
    if (pthread_setspecific(prb_torch_threads.key, thread) == 0)
        return thread;
    free(thread);
    return NULL;
}

/* An earlier arming's counts are nobody's: a call that began before it may end within it. */
static void begin_again(struct prb_torch_thread *thread, unsigned arming)
{
    int64_t tid = thread->tid;
    *thread = (struct prb_torch_thread){.tid = tid, .arming = arming, .since = prb_clock_ns()};
}

struct prb_torch_thread *prb_torch_thread_begin(void)
{
    pthread_once(&once, make_key);
    if (!atomic_load(&prb_torch_threads.ready))
        return NULL;
    struct prb_torch_thread *thread = pthread_getspecific(prb_torch_threads.key);
    if (!thread && !(thread = make_thread()))
        return NULL;
    begin_again(thread, atomic_load_explicit(&prb_torch.arming, memory_order_relaxed));
    return thread;
}

static unsigned phase_of(const struct prb_torch_thread *thread)
{
    unsigned entered = thread->entered;
    if (!entered)
        return PRB_PHASE_OTHER;
    return thread->phases[(entered < PRB_PHASE_DEPTH_MAX ? entered : PRB_PHASE_DEPTH_MAX) - 1];
}

void prb_torch_spend(struct prb_torch_thread *thread, uint64_t now)
{
    thread->spent[phase_of(thread)] += now - thread->since;
    thread->since = now;
}

void prb_torch_enter(struct prb_torch_thread *thread, enum prb_torch_phase phase, uint64_t now)
{
    prb_torch_spend(thread, now);
    if (thread->entered < PRB_PHASE_DEPTH_MAX)
        thread->phases[thread->entered] = (unsigned char)phase;
    thread->entered++;
}

void prb_torch_leave(struct prb_torch_thread *thread, uint64_t now)
{
    prb_torch_spend(thread, now);
    if (thread->entered)
        thread->entered--;
}

void prb_torch_move(struct prb_torch_thread *thread, enum prb_torch_phase phase, uint64_t ns,
                    uint64_t now)
{
    unsigned current = phase_of(thread);
    prb_torch_spend(thread, now);
    if (ns > thread->spent[current]) /* it began before the step did */
        ns = thread->spent[current];
    thread->spent[current] -= ns;
    thread->spent[phase] += ns;
}
