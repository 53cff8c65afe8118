/*
 * The thread of recording, while it is wanted: it waits for PyTorch, has a job put the hooks in, and
 * then looks now and then whether they are still there and which classes are new.
 */
#include <pthread.h>

#include "base/clock.h"
#include "inject/probe/cuda/allocator.h"
#include "inject/probe/cuda/cuda.h"
#include "inject/probe/outside/outside.h"
#include "inject/probe/python/job.h"
#include "inject/probe/server/server.h"
#include "inject/probe/thread.h"
#include "inject/probe/torch/torch.h"
#include "ring/ring.h"

#define GIL_MS 10000
#define JOB_MS 60000u
#define LOOK_MS 20       /* until PyTorch's library is there: no event says so */
#define REST_MS 500      /* between tries without its library, at first */
#define REST_MAX_MS 8000 /* it may come from elsewhere than the usual library */
#define KEEP_MS 500
#define CLASSES_NS UINT64_C(10000000000) /* between looks for new classes */
#define ASK_STEP 2                       /* then there is an optimizer to find */
#define ASK_NS UINT64_C(10000000000)     /* until a tool is asked again that told nothing */
#define COUNTER_NS UINT64_C(5000000000)  /* the same, where it did not see the program count */
#define COUNTER_TRIES 3                  /* each after eight times as long: it may not count */
#define FIRST_STEPS 2
#define MS UINT64_C(1000000)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool runs;
} keeper = {.lock = PTHREAD_MUTEX_INITIALIZER};
PRB_CLOCK_COND(keeper.changed)
static atomic_bool again; /* a job is under way that arms again */
static struct prb_outside names = {.words = {"--names"}};

/* With the lock: until something changes, or so long. */
static void rest(unsigned ms)
{
    struct timespec until = prb_clock_in(ms * 1e-3);
    pthread_cond_timedwait(&keeper.changed, &keeper.lock, &until);
}

/* ---- arming again ---- */

static void armed_again(void *context, const struct prb_python_result *result)
{
    (void)context, (void)result;
    atomic_store(&again, false);
}

static void not_armed_again(void *context, const struct prb_error *err)
{
    (void)context, (void)err;
    atomic_store(&again, false);
}

static void arm_again(void)
{
    static const struct prb_python_sink sink = {.done = armed_again, .failed = not_armed_again};
    const struct prb_python_request request = {.work = &prb_torch_put_in, .gil_ms = GIL_MS};
    if (atomic_exchange(&again, true))
        return;
    struct prb_python_job *job = prb_python_start(&request, &sink, NULL);
    if (job)
        prb_python_release(job);
    else
        atomic_store(&again, false);
}

/* torch.fx and torch.export have CPython put its own function back into every class.  A job that
 * began with recording made its classes after they were armed: its first steps tell. */
void prb_torch_check(void)
{
    if (atomic_load(&prb_torch.on) &&
        (!prb_torch_slots_hold() || atomic_load(&prb_torch.step) <= FIRST_STEPS))
        arm_again();
}

/* ---- the thread ---- */

/* Wait for the end of one try to arm; the lock is free meanwhile.  False: it will not be. */
static bool try_to_arm(bool *armed_out)
{
    const struct prb_python_request request = {.work = &prb_torch_put_in, .gil_ms = GIL_MS};
    struct prb_error err = {0};
    pthread_mutex_unlock(&keeper.lock);
    *armed_out = prb_python_wait(&request, JOB_MS, &err);
    bool later = *armed_out || err.code == PRB_NOT_FOUND || err.code == PRB_TIMEOUT;
    if (!later)
        prb_torch_refused(&err);
    pthread_mutex_lock(&keeper.lock);
    return later;
}

static bool wanted(void) { return prb_torch_wanted_now() && prb_server_runs_here(); }

/* With the lock.  False: not wanted any more, or impossible. */
static bool await_torch(void)
{
    uint64_t next = 0;
    unsigned pause = REST_MS;
    for (bool armed = false; wanted(); rest(LOOK_MS)) {
        uint64_t now = prb_clock_ns();
        if (!prb_py_api(NULL) || (!prb_torch_loaded() && now < next))
            continue;
        if (!try_to_arm(&armed))
            return false;
        if (armed)
            return true;
        next = now + pause * MS;
        pause = 2 * pause < REST_MAX_MS ? 2 * pause : REST_MAX_MS;
    }
    return false;
}

struct asking {
    uint64_t next, pause; /* for the program's counter; pause 0: nothing was told yet */
    unsigned tries;
};

/*
 * A tool that somebody waits for looks for the program's own counter for two seconds: of a job with
 * long steps, or beside much other work, it sees too few.
 */
static bool wants_tool(struct asking *asking, uint64_t now)
{
    if (atomic_load(&prb_torch.step) < ASK_STEP || atomic_load(&prb_torch.counted))
        return false;
    if (!atomic_load(&prb_torch.told)) {
        if (now < asking->next)
            return false;
        asking->next = now + ASK_NS;
        return true;
    }
    if (!asking->pause) {
        asking->pause = COUNTER_NS;
        asking->next = now + asking->pause;
    }
    if (asking->tries == COUNTER_TRIES || now < asking->next)
        return false;
    asking->tries++;
    asking->pause *= 8;
    asking->next = now + asking->pause;
    return true;
}

/* With the lock, until all is taken out. */
static void look_after(void)
{
    struct asking asking = {0};
    uint64_t classes = prb_clock_ns() + CLASSES_NS;
    while (wanted() && atomic_load(&prb_torch.on)) {
        uint64_t now = prb_clock_ns();
        if (wants_tool(&asking, now))
            prb_outside_start(&names);
        prb_torch_check();
        prb_torch_steps_rest(now);
        if (prb_cuda_look())
            prb_torch_record_devices();
        if (prb_cuda_allocator_look())
            prb_torch_cost_measure_memory();
        prb_ring_prepare(); /* the rows are written by threads of the program */
        if (now >= classes) {
            arm_again();
            classes = now + CLASSES_NS;
        }
        rest(KEEP_MS);
    }
}

static void *keep(void *nothing)
{
    (void)nothing;
    pthread_mutex_lock(&keeper.lock);
    while (await_torch()) /* again where "off" and "on" came before it looked */
        look_after();
    keeper.runs = false;
    pthread_mutex_unlock(&keeper.lock);
    return NULL;
}

void prb_torch_keep(void)
{
    pthread_mutex_lock(&keeper.lock);
    pthread_cond_broadcast(&keeper.changed);
    if (!keeper.runs && wanted())
        keeper.runs = prb_thread_start("probing-torch", keep, NULL, NULL);
    pthread_mutex_unlock(&keeper.lock);
}

void prb_torch_keep_forked(void)
{
    keeper.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    prb_clock_cond_init(&keeper.changed);
    keeper.runs = false;
    atomic_store(&again, false);
    prb_outside_forked(&names);
}
