/*
 * Steps.  An update is a run of optimizer steps with no outermost backward between them; the update
 * that holds the anchor ends a step.  That it was the last of its run is known when the next thing
 * begins: a root's call, an outermost backward, a batch.  So a step's row is written then, with the
 * numbers that were noted when its last optimizer step ended.  Where nothing follows it is written
 * after a while, and when the program ends.
 *
 * Without an optimizer a root's call is a step.  The setting probing.torch.step may say otherwise
 * (ending.h).
 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "inject/probe/torch/ending.h"
#include "inject/probe/torch/torch.h"

#define ROOTS_ALONE 64 /* root calls without a backward, after which they are the steps */
#define CALM_STEPS 16  /* that fewer rows would do, before more steps are sampled */
#define WEIGHT_MAX (1u << 20)
#define REST_NS UINT64_C(1000000000) /* without anything after a step, which has then ended */
#define EXIT_S 0.05

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What a thread had counted when a step may have ended. */
struct noted {
    uint64_t end; /* ns */
    int64_t tid;
    uint64_t calls, rows, scopes;
    uint64_t spent[PRB_PHASES];
    unsigned micro_steps;
};

static struct {
    bool whole;       /* it began after the arming */
    bool updates_run; /* the last thing was an optimizer's step */
    bool anchored;    /* ... in a run that holds the anchor */
    bool rested;      /* nothing followed for a while */
    bool owed;        /* the thread that noted has not taken off what it had counted by then */
    uint64_t begin;   /* ns */
    struct noted noted;
    unsigned updates;
    unsigned run, usual; /* optimizer steps of this run; of the last one that ended a step */
    uintptr_t object;    /* that ended it */
    unsigned label;

    uintptr_t anchor; /* 0: any */
    bool alone;       /* roots' calls are the steps */
    bool trains;      /* a backward was seen */
    unsigned roots;   /* without one */

    double rate;        /* rows that would come a second, smoothed */
    unsigned calm;      /* steps */
    double wanted_rate; /* below 0: by the budget */
    unsigned normal, shadow;
    bool is_shadow; /* this step */

    uint64_t marking; /* ns: what the device's times of the step before took */
} run = {.wanted_rate = -1};

/* ---- how many steps are sampled ---- */

static unsigned weight_of(double rate)
{
    double steps = rate > 0 ? 1 / rate + 0.5 : WEIGHT_MAX;
    return steps < WEIGHT_MAX ? (unsigned)steps : WEIGHT_MAX;
}

static void weigh(const struct noted *noted, uint64_t duration, double overhead)
{
    unsigned weight = atomic_load(&prb_torch.weight), least = 1;
    double rate = duration ? (double)noted->calls * 1e9 / (double)duration : 0;
    run.rate = run.rate > 0 ? 0.75 * run.rate + 0.25 * rate : rate;
    if (run.wanted_rate >= 0) {
        least = weight_of(run.wanted_rate);
        weight = least;
    }
    while (run.wanted_rate < 0 && least < WEIGHT_MAX &&
           run.rate > atomic_load(&prb_torch.budget) * least)
        least *= 2;
    least *= prb_torch_control_step(overhead, noted->end);
    run.calm = least < weight ? run.calm + 1 : 0;
    if (least > weight || run.calm > CALM_STEPS) {
        weight = least;
        run.calm = 0;
    }
    atomic_store(&prb_torch.weight, weight);
}

static uint64_t mixed(uint64_t step) { return (step + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 20; }

/* Steps in turns of normal + shadow: the shadow ones stand together, at a place that each turn
 * draws anew. */
static bool in_shadow(uint64_t step)
{
    unsigned turn = run.normal + run.shadow;
    if (!run.shadow || !(run.trains || run.alone))
        return false;
    uint64_t first = mixed(step / turn) % (run.normal + 1), place = step % turn;
    return place >= first && place < first + run.shadow;
}

/* All ranks choose alike: by the step's number.  Where a root's call is a step, calls are looked at
 * in any case. */
static void choose(void)
{
    uint64_t step = (uint64_t)(atomic_load(&prb_torch.step) + atomic_load(&prb_torch.offset));
    uint64_t number = atomic_load(&prb_torch.random) ? mixed(step) : step;
    run.is_shadow = in_shadow(step);
    atomic_store(&prb_torch.sampled, run.wanted_rate != 0 && !run.is_shadow &&
                                         number % atomic_load(&prb_torch.weight) == 0);
    atomic_store(&prb_torch.quiet, (run.is_shadow || !atomic_load(&prb_torch.shallow)) &&
                                       run.trains &&
                                       prb_torch_ending_kind() != PRB_TORCH_ENDS_MODULE);
}

/* ---- ends of steps ---- */

static void carry(struct prb_torch_thread *thread);

static void note(struct prb_torch_thread *thread, uint64_t now)
{
    carry(thread);
    prb_torch_spend(thread, now);
    run.noted = (struct noted){.end = now,
                               .tid = thread->tid,
                               .calls = thread->calls,
                               .rows = thread->rows,
                               .scopes = thread->scopes,
                               .micro_steps = atomic_load(&prb_torch.micro_step)};
    memcpy(run.noted.spent, thread->spent, sizeof thread->spent);
}

static void write_step(void)
{
    const struct noted *noted = &run.noted;
    uint64_t duration = noted->end - run.begin;
    double cost = prb_torch_cost(noted->calls, noted->rows, noted->scopes) + (double)run.marking;
    struct prb_torch_step step = {
        .end = noted->end,
        .duration = duration,
        .step = atomic_load(&prb_torch.step),
        .updates = run.updates,
        .micro_steps = noted->micro_steps,
        .events = noted->calls + noted->scopes,
        .overhead = duration ? cost / (double)duration : 0,
        .sampled = atomic_load(&prb_torch.sampled),
        .shadow = run.is_shadow,
        .weight = atomic_load(&prb_torch.weight),
        .object = run.object,
        .label = run.label,
        .tid = noted->tid,
    };
    memcpy(step.spent, noted->spent, sizeof step.spent);
    prb_torch_record_step(&step);
    if (!run.is_shadow) /* it would seem to cost nothing */
        weigh(noted, duration, step.overhead);
}

/* What the thread has counted since the last step ended belongs to the next one. */
static void carry(struct prb_torch_thread *thread)
{
    const struct noted *noted = &run.noted;
    if (!thread || !run.owed)
        return;
    run.owed = false;
    if (thread->tid != noted->tid) {
        memset(thread->spent, 0, sizeof thread->spent);
        thread->calls = thread->rows = thread->scopes = 0;
        return;
    }
    for (int i = 0; i < PRB_PHASES; i++)
        thread->spent[i] -= noted->spent[i] < thread->spent[i] ? noted->spent[i] : thread->spent[i];
    thread->calls -= noted->calls;
    thread->rows -= noted->rows;
    thread->scopes -= noted->scopes;
}

/* With the lock: the step that was noted has ended. */
static void end_step(struct prb_torch_thread *thread)
{
    uint64_t duration = run.noted.end - run.begin;
    if (run.whole)
        write_step();
    run.owed = true;
    carry(thread);
    run.whole = true;
    run.begin = run.noted.end;
    run.usual = run.run;
    run.updates = 0;
    run.anchored = false;
    run.object = 0;
    run.label = 0;
    atomic_fetch_sub(&prb_torch.micro_step, run.noted.micro_steps);
    atomic_fetch_add(&prb_torch.step, 1);
    choose();
    run.marking = prb_torch_device_step_ends(run.noted.end, duration, run.noted.tid,
                                             atomic_load(&prb_torch.sampled));
    prb_torch_check();
}

static void tell(const struct prb_torch_thread *thread, enum prb_torch_moment moment, bool gil,
                 uint64_t now, uintptr_t optimizer, bool followed)
{
    if (!atomic_load_explicit(&prb_torch_listeners, memory_order_relaxed))
        return;
    const struct prb_torch_now moment_now = {
        .moment = moment,
        .gil = gil,
        .local_step = atomic_load(&prb_torch.step),
        .micro_step = atomic_load(&prb_torch.micro_step),
        .arming = thread->arming,
        .at = now,
        .optimizer = optimizer,
        .followed = followed,
    };
    prb_torch_tell(&moment_now);
}

/* What begins after a step. */
enum next { NEXT_CALL, NEXT_BATCH, NEXT_NOTHING /* for a while */ };

static void tell_next(const struct prb_torch_thread *thread, enum next next)
{
    const struct prb_torch_now now = {
        .moment = PRB_TORCH_NEXT_BEGINS,
        .batch = next == NEXT_BATCH && thread && thread->tid == run.noted.tid,
        .rests = next == NEXT_NOTHING,
    };
    if (atomic_load_explicit(&prb_torch_listeners, memory_order_relaxed))
        prb_torch_tell(&now);
}

/* With the lock: something begins that is no optimizer's step. */
static void end_run(struct prb_torch_thread *thread, enum next next)
{
    carry(thread);
    bool ends = run.updates_run && run.anchored;
    if (ends || run.rested)
        tell_next(thread, next);
    run.rested = next == NEXT_NOTHING;
    if (ends)
        end_step(thread);
    if (run.updates_run)
        run.run = 0;
    run.updates_run = false;
}

/* ---- events ---- */

void prb_torch_root_begins(struct prb_torch_thread *thread, uint64_t now)
{
    bool inside = atomic_load(&prb_torch.backward) > 0;
    if (!inside) {
        pthread_mutex_lock(&lock);
        end_run(thread, NEXT_CALL);
        pthread_mutex_unlock(&lock);
    }
    prb_torch_enter(thread, inside ? PRB_PHASE_BACKWARD : PRB_PHASE_FORWARD, now);
    if (!inside)
        prb_torch_device_mark(thread, PRB_PHASE_FORWARD);
}

void prb_torch_root_ends(struct prb_torch_thread *thread, uint64_t now)
{
    prb_torch_leave(thread, now);
    if (!atomic_load(&prb_torch.backward))
        prb_torch_device_mark(thread, PRB_PHASE_OTHER);
    if (run.trains || atomic_load(&prb_torch.backward) > 0 ||
        prb_torch_ending_kind() != PRB_TORCH_ENDS_AUTO)
        return;
    pthread_mutex_lock(&lock);
    bool ended = run.alone || (!run.trains && ++run.roots > ROOTS_ALONE);
    if (ended) {
        tell(thread, PRB_TORCH_ROOT_ENDS, true, now, 0, false);
        note(thread, now);
        end_step(thread);
    }
    pthread_mutex_unlock(&lock);
}

void prb_torch_step_ends(struct prb_torch_thread *thread, uint64_t now, bool gil)
{
    tell(thread, gil ? PRB_TORCH_ROOT_ENDS : PRB_TORCH_STEP_ENDS, gil, now, 0, false);
    pthread_mutex_lock(&lock);
    note(thread, now);
    end_step(thread);
    pthread_mutex_unlock(&lock);
}

void prb_torch_backward_begins(struct prb_torch_thread *thread, uint64_t now)
{
    pthread_mutex_lock(&lock);
    run.trains = true;
    run.alone = false;
    end_run(thread, NEXT_CALL);
    pthread_mutex_unlock(&lock);
    prb_torch_enter(thread, PRB_PHASE_BACKWARD, now);
    prb_torch_device_mark(thread, PRB_PHASE_BACKWARD);
}

void prb_torch_backward_ends(struct prb_torch_thread *thread, uint64_t now)
{
    prb_torch_leave(thread, now);
    prb_torch_device_mark(thread, PRB_PHASE_OTHER);
    tell(thread, PRB_TORCH_BACKWARD_ENDS, true, now, 0, false);
    atomic_fetch_add(&prb_torch.micro_step, 1);
}

void prb_torch_data_begins(struct prb_torch_thread *thread, uint64_t now)
{
    if (prb_torch_ending_kind() == PRB_TORCH_ENDS_DATA) {
        prb_torch_step_ends(thread, now, false);
        return;
    }
    pthread_mutex_lock(&lock);
    end_run(thread, NEXT_BATCH);
    pthread_mutex_unlock(&lock);
}

void prb_torch_optimizer_ends(struct prb_torch_thread *thread, uint64_t now, uintptr_t object,
                              unsigned label)
{
    prb_torch_device_mark(thread, PRB_PHASE_OTHER);
    pthread_mutex_lock(&lock);
    run.trains = true;
    run.alone = false;
    if (!run.updates_run) {
        run.updates_run = true;
        run.updates++;
        run.run = 0;
    }
    run.run++;
    bool by_itself = prb_torch_ending_kind() == PRB_TORCH_ENDS_AUTO;
    bool anchor = by_itself ? !run.anchor || !object || object == run.anchor
                            : prb_torch_ends_optimizer(object, label);
    if (anchor || prb_torch_ending_kind() > PRB_TORCH_ENDS_OPTIMIZER) {
        run.object = object;
        run.label = label;
    }
    run.anchored |= anchor;
    if (run.anchored)
        note(thread, now);
    pthread_mutex_unlock(&lock);
    if (anchor)
        tell(thread, PRB_TORCH_STEP_ENDS, false, now, object, true);
}

int64_t prb_torch_step_of(bool ends)
{
    bool next = !ends && run.updates_run && run.anchored && run.run >= run.usual;
    return atomic_load_explicit(&prb_torch.step, memory_order_relaxed) + next;
}

/* ---- beginning and end ---- */

void prb_torch_steps_begin(void)
{
    pthread_mutex_lock(&lock);
    double wanted = run.wanted_rate;
    unsigned normal = run.normal, shadow = run.shadow;
    memset(&run, 0, sizeof run);
    run.wanted_rate = wanted;
    run.normal = normal;
    run.shadow = shadow;
    run.begin = prb_clock_ns();
    prb_torch_device_begin();
    atomic_store(&prb_torch.backward, 0);
    atomic_store(&prb_torch.micro_step, 0);
    atomic_store(&prb_torch.step, 0);
    atomic_store(&prb_torch.offset, 0);
    atomic_store(&prb_torch.told, false);
    atomic_store(&prb_torch.counted, false);
    atomic_store(&prb_torch.weight, wanted >= 0 ? weight_of(wanted) : 1);
    choose();
    pthread_mutex_unlock(&lock);
}

/* The step that has ended, but not been followed by anything. */
void prb_torch_steps_end(void)
{
    pthread_mutex_lock(&lock);
    end_run(NULL, NEXT_CALL);
    pthread_mutex_unlock(&lock);
}

void prb_torch_steps_rest(uint64_t now)
{
    pthread_mutex_lock(&lock);
    bool whole = run.updates_run && run.anchored && run.usual && run.run >= run.usual;
    if (whole && now > run.noted.end + REST_NS)
        end_run(NULL, NEXT_NOTHING);
    pthread_mutex_unlock(&lock);
}

/* At exit(3): other threads still run, and one may have the lock for as long as it likes. */
__attribute__((destructor)) static void end_last_step(void)
{
    if (!atomic_load(&prb_torch.on)) /* nor in a child after fork(2) */
        return;
    struct timespec until = prb_clock_epoch_in(EXIT_S);
    if (pthread_mutex_timedlock(&lock, &until) != 0)
        return;
    if (run.rested || (run.updates_run && run.anchored))
        tell_next(NULL, NEXT_CALL);
    if (run.updates_run && run.anchored && run.whole)
        write_step();
    run.rested = run.anchored = false;
    pthread_mutex_unlock(&lock);
}

void prb_torch_steps_anew(void)
{
    pthread_mutex_lock(&lock);
    run.whole = run.anchored = run.alone = false;
    run.roots = 0;
    atomic_store(&prb_torch.quiet, false);
    pthread_mutex_unlock(&lock);
}

void prb_torch_set_rate(double rate)
{
    pthread_mutex_lock(&lock);
    run.wanted_rate = rate;
    pthread_mutex_unlock(&lock);
}

void prb_torch_set_shadow(unsigned normal, unsigned shadow)
{
    pthread_mutex_lock(&lock);
    run.normal = normal;
    run.shadow = shadow;
    pthread_mutex_unlock(&lock);
}

void prb_torch_anchor(uintptr_t object, bool no_optimizer)
{
    pthread_mutex_lock(&lock);
    run.anchor = object;
    atomic_store(&prb_torch.told, true);
    run.alone = no_optimizer && !run.trains && prb_torch_ending_kind() == PRB_TORCH_ENDS_AUTO;
    pthread_mutex_unlock(&lock);
}

int64_t prb_torch_steps_ended(void)
{
    pthread_mutex_lock(&lock);
    int64_t ended = atomic_load(&prb_torch.step) - 1 + (run.updates_run && run.anchored);
    pthread_mutex_unlock(&lock);
    return ended;
}

void prb_torch_set_offset(int64_t offset, const char *counter)
{
    atomic_store(&prb_torch.offset, offset);
    atomic_store(&prb_torch.counted, true);
    prb_torch_record_name(PRB_TRACE_KIND_OFFSET, offset, counter, strlen(counter), NULL, 0);
}

void prb_torch_steps_forked(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    prb_torch_device_forked();
}
