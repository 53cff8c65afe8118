/*
 * What a step takes on its device: events where phases begin and end, on the stream that PyTorch has
 * then, of steps that are sampled, and of so few that all of it stays below SHARE of the time: on a
 * busy device a step's events took 58 us.  They are read when a later step ends, and only if the
 * device is done with them: nothing waits for it.
 *
 * The time of a phase is that from where the device came to its begin to where it came to its end:
 * with what it waited for the CPU in between.
 */
#include <string.h>

#include "inject/probe/cuda/cuda.h"
#include "inject/probe/torch/torch.h"

#define MARKS 64u                  /* of a step; one with more has no times */
#define TIMELINES 16u              /* steps that the device may be behind; a power of two */
#define SHARE 400                  /* a 400th of the time, 0.25 % */
#define COST_MOST UINT64_C(200000) /* ns of a step's marks; beyond, the thread lost its CPU */

struct timeline {
    int64_t step, tid;
    unsigned arming, count;
    uint64_t end;                /* ns */
    bool broken;                 /* there was no visit at one of them, or no room */
    unsigned char phases[MARKS]; /* which begins there */
    void *events[MARKS];         /* of one device */
};

static atomic_flag lock = ATOMIC_FLAG_INIT; /* hooks never wait for it */
static atomic_bool
    missed; /* who did not get it: the step has no times, else a phase had another's */
static struct timeline timelines[TIMELINES];
static unsigned first,
    now_at;            /* counts: of the oldest that is not read, of the one that is filled */
static int device;     /* whose the events are */
static bool chosen;    /* this step has marks */
static uint64_t spent; /* ns, on the step that is marked now */
static uint64_t owed;  /* ns that steps are to take before another is marked */

static bool try_lock(void)
{
    if (!atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        return true;
    atomic_store(&missed, true);
    return false;
}

static void forget_events(void)
{
    /* Those of another device stay: they are few, and a program has one. */
    for (unsigned i = 0; i < TIMELINES; i++)
        memset(timelines[i].events, 0, sizeof timelines[i].events);
    first = now_at;
}

static void mark(struct timeline *line, enum prb_torch_phase phase)
{
    struct prb_cuda_visit visit;
    if (!prb_cuda_enter(&visit)) {
        line->broken = true;
        return;
    }
    if (visit.device != device) {
        forget_events();
        device = visit.device;
        line->broken |= line->count > 0;
    }
    line->phases[line->count] = (unsigned char)phase;
    if (prb_cuda_record(&visit, true, &line->events[line->count]))
        line->count++;
    else
        line->broken = true;
    prb_cuda_leave(&visit);
}

void prb_torch_device_mark(const struct prb_torch_thread *thread, enum prb_torch_phase phase)
{
    if (!chosen || !try_lock())
        return;
    const uint64_t begin = prb_clock_ns();
    struct timeline *line = &timelines[now_at % TIMELINES];
    if (!line->count)
        line->tid = thread->tid;
    bool full = line->count == MARKS;
    line->broken |= full;
    if (chosen && !line->broken && thread->tid == line->tid) {
        mark(line, phase);
        spent += prb_clock_ns() - begin;
    }
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

static void write_line(const struct timeline *line)
{
    struct prb_torch_device_step step = {
        .end = line->end, .step = line->step, .arming = line->arming, .tid = line->tid};
    for (unsigned i = 0; i + 1 < line->count; i++) {
        float ms = prb_cuda_between(line->events[i], line->events[i + 1]);
        if (ms < 0)
            return;
        step.spent[line->phases[i]] += (uint64_t)((double)ms * 1e6);
    }
    prb_torch_record_device_step(&step);
}

/* With the lock: what the device is done with. */
static void write_done(void)
{
    struct prb_cuda_visit visit;
    if (first == now_at || !prb_cuda_enter(&visit))
        return;
    while (first != now_at && visit.device == device) {
        const struct timeline *line = &timelines[first % TIMELINES];
        if (!prb_cuda_is_done(line->events[line->count - 1]))
            break;
        write_line(line);
        first++;
    }
    prb_cuda_leave(&visit);
}

/* The next one; where the device is far behind, the oldest goes. */
static void begin_line(int64_t step)
{
    if (now_at - first == TIMELINES)
        first++;
    struct timeline *line = &timelines[now_at % TIMELINES];
    line->step = step;
    line->arming = atomic_load_explicit(&prb_torch.arming, memory_order_relaxed);
    line->count = 0;
    line->broken = false;
}

uint64_t prb_torch_device_step_ends(uint64_t end, uint64_t duration, int64_t tid,
                                    bool next_is_sampled)
{
    owed -= duration < owed ? duration : owed;
    bool wanted = next_is_sampled && !owed && prb_cuda_found() &&
                  atomic_load_explicit(&prb_torch.device, memory_order_relaxed);
    if ((!chosen && !wanted) || !try_lock())
        return 0;
    uint64_t begin = prb_clock_ns();
    struct timeline *line = &timelines[now_at % TIMELINES];
    bool whole = !atomic_exchange(&missed, false) && !line->broken && line->tid == tid;
    if (chosen && whole && line->count > 1) {
        line->end = end;
        now_at++;
    }
    write_done();
    chosen = wanted;
    begin_line(atomic_load(&prb_torch.step));
    uint64_t took = spent;
    spent = prb_clock_ns() - begin;
    owed += (took < COST_MOST ? took : COST_MOST) * SHARE;
    atomic_flag_clear_explicit(&lock, memory_order_release);
    return took;
}

void prb_torch_device_begin(void)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {
    }
    chosen = false;
    first = now_at;
    begin_line(-1);
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

void prb_torch_device_forked(void)
{
    atomic_flag_clear(&lock);
    chosen = false;
    first = now_at;
    memset(timelines, 0, sizeof timelines);
}
