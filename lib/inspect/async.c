/*
 * The tasks of asyncio in a target: finds them, reads each until two readings agree, and makes rows.
 * py/asyncio.h reads one interpreter; the sampler knows where running tasks are.
 */
#include <string.h>
#include <time.h>

#include "inspect/async.h"
#include "py/object/reader.h"

#define READ_TRIES 8 /* of a task before it is called unstable */

void prb_async_tasks_free(struct prb_async_tasks *tasks)
{
    if (!tasks)
        return;
    struct prb_async_box *box = (struct prb_async_box *)tasks;
    for (size_t i = 0; i < tasks->count; i++) {
        free(tasks->items[i].awaited_by);
        free(tasks->items[i].awaits);
    }
    free(tasks->items);
    prb_arena_deinit(&box->rows.arena);
    free(box);
}
PRB_DEFINE_AUTO_PTR(prb_async_tasks, struct prb_async_tasks, prb_async_tasks_free)

static void reading_deinit(struct prb_async_reading *reading)
{
    for (size_t i = 0; i < reading->count; i++) {
        prb_async_raw_deinit(&reading->ones[i].raw);
        prb_async_raw_deinit(&reading->ones[i].before);
    }
    free(reading->ones);
    free(reading->base.facts);
    prb_reading_deinit(&reading->base);
    reading->ones = NULL;
    reading->base.facts = NULL;
    reading->count = reading->cap = 0;
}
PRB_DEFINE_AUTO(async_reading, struct prb_async_reading, reading_deinit)

/* ---- which tasks there are ---- */

static bool add_task(void *context, prb_addr task)
{
    struct prb_async_reading *reading = context;
    if (!PRB_GROW(reading->ones, reading->count, reading->cap)) {
        reading->failed = true;
        return false;
    }
    reading->ones[reading->count++] = (struct prb_async_one){
        .raw = {.addr = task}, .interpreter = reading->interpreter, .thread = SIZE_MAX};
    return true;
}

static bool find_tasks(struct prb_async_reading *reading, struct prb_error *err)
{
    const struct prb_raw_stacks *raw = reading->base.raw;
    struct prb_objects *objects = reading->base.runtime->objects;
    for (size_t i = 0; i < raw->interpreter_count; i++) {
        prb_addr module = 0;
        bool whole = true, known = true;
        if (!prb_module_get(objects, raw->interpreters[i].addr, "asyncio.tasks", "Task", &module,
                            NULL) ||
            !module)
            continue;
        reading->box->tasks.imported = true;
        reading->interpreter = i;
        prb_async_tasks_each(objects, raw->interpreters[i].addr, raw, i, add_task, reading, &whole,
                             &known);
        if (reading->failed)
            return prb_nomem(err);
        if (!known)
            reading->box->tasks.warning = "the asyncio of this CPython keeps its tasks where they "
                                          "cannot be found from outside (3.7 and later are read)";
        if (!whole)
            reading->box->tasks.warning =
                "the list of tasks could not be read to its end: some are missing";
    }
    return true;
}

/* ---- where the running ones are ---- */

static int by_coroutine(const void *a, const void *b)
{
    const struct prb_async_one *const *x = a, *const *y = b;
    prb_addr left = (*x)->raw.awaits.frames[0].frame, right = (*y)->raw.awaits.frames[0].frame;
    return left < right ? -1 : left > right;
}

static bool runs(const struct prb_async_one *one)
{
    return !one->gone && one->raw.awaits.state == PRB_COROUTINE_EXECUTING && one->raw.awaits.count;
}

static struct prb_async_one *find_frame(struct prb_async_one **running, size_t count,
                                        prb_addr frame)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        prb_addr at = running[middle]->raw.awaits.frames[0].frame;
        if (at == frame)
            return running[middle];
        if (at < frame)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Find the running coroutines in the threads' chains; *missing: how many were not found. */
static bool place_running(struct prb_async_reading *reading, size_t *missing, struct prb_error *err)
{
    size_t count = 0;
    const struct prb_raw_stacks *raw = reading->base.raw;
    PRB_AUTO_FREE struct prb_async_one **running = calloc(reading->count + 1, sizeof *running);
    if (!running)
        return prb_nomem(err);
    for (size_t i = 0; i < reading->count; i++) {
        reading->ones[i].thread = SIZE_MAX;
        if (runs(&reading->ones[i]))
            running[count++] = &reading->ones[i];
    }
    qsort(running, count, sizeof *running, by_coroutine);
    for (size_t t = 0; count && t < raw->thread_count; t++)
        for (size_t f = 0; f < raw->threads[t].frame_count; f++) {
            struct prb_async_one *one = find_frame(running, count, raw->threads[t].frames[f].frame);
            if (one && one->thread == SIZE_MAX) {
                one->thread = t;
                one->frame = f;
            }
        }
    *missing = 0;
    for (size_t i = 0; i < count; i++)
        *missing += running[i]->thread == SIZE_MAX;
    return true;
}

/* ---- reading until two readings agree ---- */

static void read_one(struct prb_async_reading *reading, struct prb_async_one *one)
{
    struct prb_error err = {0};
    struct prb_async_raw swap = one->before;
    if (reading->frames_left < one->raw.awaits.count)
        return; /* one whole reading is better than one that was cut */
    one->before = one->raw;
    one->raw = swap;
    one->gone = !prb_async_task_read(reading->base.runtime->objects, one->before.addr,
                                     &reading->frames_left, &one->raw, &err);
    one->raw.addr = one->before.addr;
    one->stable = one->gone || prb_async_task_equal(&one->raw, &one->before);
    if (err.code == PRB_UNSUPPORTED && !reading->box->tasks.warning)
        reading->box->tasks.warning = prb_arena_strdup(&reading->box->rows.arena, err.text);
}

static bool sample(struct prb_async_reading *reading, struct prb_error *err)
{
    struct prb_reading *inner = &reading->base;
    bool live = prb_proc_live(inner->target->proc);
    inner->raw = prb_sampler_take(inner->runtime->sampler, live ? 0 : 1, err);
    if (!inner->raw)
        return false;
    free(inner->facts);
    inner->facts = calloc(inner->raw->thread_count + 1, sizeof *inner->facts);
    if (!inner->facts)
        return prb_nomem(err);
    prb_threads_identify(inner->target, inner->runtime, inner->raw, inner->tasks,
                         &reading->box->rows.arena, inner->facts);
    return true;
}

static bool read_all(struct prb_async_reading *reading, struct prb_error *err)
{
    bool live = prb_proc_live(reading->base.target->proc);
    for (size_t i = 0; i < reading->count; i++)
        read_one(reading, &reading->ones[i]);
    for (int tries = 0; tries < READ_TRIES; tries++) {
        size_t open = 0, missing = 0;
        if (live)
            prb_objects_clear(reading->base.runtime->objects);
        for (size_t i = 0; i < reading->count; i++) {
            struct prb_async_one *one = &reading->ones[i];
            bool lost = tries && runs(one) && one->thread == SIZE_MAX;
            if (tries == 0 || !one->stable || lost)
                read_one(reading, one);
            open += !one->stable;
        }
        if ((tries && !sample(reading, err)) || !place_running(reading, &missing, err))
            return false;
        if (!live || open + missing == 0)
            return true;
    }
    return true;
}

/* ---- all tasks ---- */

void prb_async_prepare(struct prb_target *target, const struct prb_runtime *runtime)
{
    PRB_AUTO(prb_modules) struct prb_modules modules = {0};
    struct prb_py *py = runtime->py;
    struct prb_proc *proc = target->proc;
    if (!PRB_HAS(&py->layout, asyncio_task, node))
        return; /* no table in this version */
    if (prb_asyncio_offsets_apply(&target->modules, py->mem, &py->layout))
        return;
    /* The C module may have been loaded since the target was opened. */
    if (prb_proc_live(proc) && prb_modules_init(&modules, proc, NULL))
        (void)prb_asyncio_offsets_apply(&modules, py->mem, &py->layout);
}

static bool take_runtime(struct prb_async_box *box, struct prb_reading *reading,
                         struct prb_error *err)
{
    PRB_AUTO(async_reading)
    struct prb_async_reading async = {.base = *reading,
                                      .box = box,
                                      .frames_left = PRB_ASYNC_FRAMES_MAX,
                                      .rows_left = PRB_ASYNC_FRAMES_MAX};
    prb_codes_new_reading(reading->runtime->py);
    prb_objects_clear(reading->runtime->objects);
    prb_async_prepare(reading->target, reading->runtime);
    if (!sample(&async, err))
        return false;
    prb_reading_folders(&async.base);
    return find_tasks(&async, err) && read_all(&async, err) && prb_async_rows(&async, err);
}

static bool take_all(struct prb_target *target, struct prb_async_box *box, struct prb_error *err)
{
    static const struct prb_stack_options options;
    PRB_AUTO(prb_tasks) struct prb_tasks threads = {0};
    if (!prb_proc_tids(target->proc, &threads, err))
        return false;
    PRB_AUTO_FREE bool *covered = calloc(threads.count + 1, sizeof *covered);
    if (!covered)
        return prb_nomem(err);
    for (size_t i = 0; i < target->runtime_count; i++) {
        struct prb_reading reading = {.target = target,
                                      .runtime = &target->runtimes[i],
                                      .options = &options,
                                      .tasks = &threads,
                                      .covered = covered,
                                      .box = &box->rows};
        if (!take_runtime(box, &reading, err))
            return false;
    }
    return true;
}

struct prb_async_tasks *prb_async_tasks_take(struct prb_target *target, struct prb_error *err)
{
    struct prb_async_box *box = calloc(1, sizeof *box);
    if (!box)
        return PRB_NULL(prb_nomem(err));
    PRB_AUTO(prb_async_tasks) struct prb_async_tasks *tasks = &box->tasks;
    prb_reading_time(target, &tasks->time);
    prb_reading_info(&box->rows.arena, &target->info, &tasks->target);
    bool good = take_all(target, box, err);
    if (!prb_proc_check(target->proc, err) || !good)
        return NULL;
    return PRB_STEAL(tasks);
}
