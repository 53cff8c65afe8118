/*
 * What belongs to the writing process and its threads.  A page that fork empties (MADV_WIPEONFORK,
 * madvise(2), Linux 4.14) distinguishes a child from its parent at the cost of one load; pthread
 * keys report the end of threads.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "ring/writer.h"

struct prb_ring_process prb_ring_process;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready;
static int cancel_before; /* of the thread that has the lock */

static void thread_end(void *value)
{
    struct prb_ring_thread *thread = value;
    for (size_t i = 0; i < thread->count; i++)
        if (thread->lanes[i].chunk && prb_ring_own(thread->lanes[i].table))
            prb_ring_chunk_leave(&thread->lanes[i]);
    free(thread->lanes);
    free(thread);
}

static void begin(void)
{
    struct prb_ring_process *process = &prb_ring_process;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *word = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (word == MAP_FAILED || pthread_key_create(&process->key, thread_end) != 0)
        return;
    process->wiped = madvise(word, page, MADV_WIPEONFORK) == 0;
    process->token = (_Atomic uint64_t *)word;
    process->lock = (_Atomic uint32_t *)(word + 64);
    ready = true;
}

/* It names its holder's process: a child whose page was not wiped takes it from a thread that it
 * does not have. */
static bool take_lock(uint32_t *holder, uint32_t own)
{
    _Atomic uint32_t *lock = prb_ring_process.lock;
    return atomic_compare_exchange_strong(lock, holder, own) ||
           (*holder != own && atomic_compare_exchange_strong(lock, holder, own));
}

bool prb_ring_lock(struct prb_error *err)
{
    pthread_once(&once, begin);
    if (!ready)
        return prb_nomem(err);
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* nobody would unlock */
    uint32_t own = (uint32_t)getpid();
    for (uint32_t holder = 0; !take_lock(&holder, own); holder = 0)
        sched_yield();
    cancel_before = cancel;
    return true;
}

void prb_ring_unlock(void)
{
    int cancel = cancel_before;
    atomic_store(prb_ring_process.lock, 0);
    pthread_setcancelstate(cancel, NULL);
}

uint64_t prb_ring_token(void)
{
    static uint64_t last; /* a child goes on where its parent was, so no token comes twice */
    struct prb_ring_process *process = &prb_ring_process;
    uint64_t token = atomic_load(process->token);
    if (token && (process->wiped || process->pid == getpid()))
        return token;
    atomic_store(&process->tables, NULL); /* the parent's */
    atomic_store(&process->memory, 0);
    process->pid = getpid();
    atomic_store(process->token, ++last);
    return last;
}

struct prb_ring_lane *prb_ring_lane_new(struct prb_ring_table *table)
{
    struct prb_ring_thread *thread = pthread_getspecific(prb_ring_process.key);
    if (!thread) {
        thread = calloc(1, sizeof *thread);
        if (!thread || pthread_setspecific(prb_ring_process.key, thread) != 0) {
            free(thread);
            return NULL;
        }
    }
    if (table->index >= thread->count) {
        size_t count = table->index + 8;
        struct prb_ring_lane *lanes = realloc(thread->lanes, count * sizeof *lanes);
        if (!lanes)
            return NULL;
        memset(lanes + thread->count, 0, (count - thread->count) * sizeof *lanes);
        thread->lanes = lanes;
        thread->count = count;
    }
    struct prb_ring_lane *lane = &thread->lanes[table->index];
    lane->table = table;
    return lane;
}
