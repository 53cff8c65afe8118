/*
 * The tasks of asyncio in a target: found, read until two readings agree, and made into rows.
 * Relies on py/asyncio.h for one interpreter, on the sampler for where running ones are.
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

static void look_deinit(struct prb_async_look *look)
{
    for (size_t i = 0; i < look->count; i++) {
        prb_async_raw_deinit(&look->ones[i].raw);
        prb_async_raw_deinit(&look->ones[i].before);
    }
    free(look->ones);
    free(look->look.facts);
    look->ones = NULL;
    look->look.facts = NULL;
    look->count = look->cap = 0;
}
PRB_DEFINE_AUTO(async_look, struct prb_async_look, look_deinit)

/* ---- which tasks there are ---- */

static bool add_task(void *context, prb_addr task)
{
    struct prb_async_look *look = context;
    if (!PRB_GROW(look->ones, look->count, look->cap)) {
        look->failed = true;
        return false;
    }
    look->ones[look->count++] = (struct prb_async_one){
        .raw = {.addr = task}, .interpreter = look->interpreter, .thread = SIZE_MAX};
    return true;
}

static bool find_tasks(struct prb_async_look *look, struct prb_error *err)
{
    const struct prb_raw_stacks *raw = look->look.raw;
    struct prb_objects *objects = look->look.runtime->objects;
    for (size_t i = 0; i < raw->interpreter_count; i++) {
        prb_addr module = 0;
        bool whole = true, known = true;
        if (!prb_module_get(objects, raw->interpreters[i].addr, "asyncio.tasks", "Task", &module,
                            NULL) ||
            !module)
            continue;
        look->box->tasks.imported = true;
        look->interpreter = i;
        prb_async_tasks_each(objects, raw->interpreters[i].addr, raw, i, add_task, look, &whole,
                             &known);
        if (look->failed)
            return prb_nomem(err);
        if (!known)
            look->box->tasks.warning = "the asyncio of this CPython keeps its tasks where they "
                                       "cannot be found from outside (3.7 and later are read)";
        if (!whole)
            look->box->tasks.warning =
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

/* Find the coroutines that execute in the threads' chains; *missing: how many are in none. */
static bool place_running(struct prb_async_look *look, size_t *missing, struct prb_error *err)
{
    size_t count = 0;
    const struct prb_raw_stacks *raw = look->look.raw;
    PRB_AUTO_FREE struct prb_async_one **running = calloc(look->count + 1, sizeof *running);
    if (!running)
        return prb_nomem(err);
    for (size_t i = 0; i < look->count; i++) {
        look->ones[i].thread = SIZE_MAX;
        if (runs(&look->ones[i]))
            running[count++] = &look->ones[i];
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

/* ---- reading until it is true ---- */

static void read_one(struct prb_async_look *look, struct prb_async_one *one)
{
    struct prb_error err = {0};
    struct prb_async_raw swap = one->before;
    if (look->frames_left < one->raw.awaits.count)
        return; /* what was read once says more than a chain that is cut */
    one->before = one->raw;
    one->raw = swap;
    one->gone = !prb_async_task_read(look->look.runtime->objects, one->before.addr,
                                     &look->frames_left, &one->raw, &err);
    one->raw.addr = one->before.addr;
    one->stable = one->gone || prb_async_task_equal(&one->raw, &one->before);
    if (err.code == PRB_UNSUPPORTED && !look->box->tasks.warning)
        look->box->tasks.warning = prb_arena_strdup(&look->box->rows.arena, err.text);
}

static bool sample(struct prb_async_look *look, struct prb_error *err)
{
    struct prb_look *inner = &look->look;
    bool live = prb_proc_live(inner->target->proc);
    inner->raw = prb_sampler_take(inner->runtime->sampler, live ? 0 : 1, err);
    if (!inner->raw)
        return false;
    free(inner->facts);
    inner->facts = calloc(inner->raw->thread_count + 1, sizeof *inner->facts);
    if (!inner->facts)
        return prb_nomem(err);
    prb_threads_identify(inner->target, inner->runtime, inner->raw, inner->tasks,
                         &look->box->rows.arena, inner->facts);
    return true;
}

static bool read_all(struct prb_async_look *look, struct prb_error *err)
{
    bool live = prb_proc_live(look->look.target->proc);
    for (size_t i = 0; i < look->count; i++)
        read_one(look, &look->ones[i]);
    for (int tries = 0; tries < READ_TRIES; tries++) {
        size_t open = 0, missing = 0;
        if (live)
            prb_objects_clear(look->look.runtime->objects);
        for (size_t i = 0; i < look->count; i++) {
            struct prb_async_one *one = &look->ones[i];
            bool lost = tries && runs(one) && one->thread == SIZE_MAX;
            if (tries == 0 || !one->stable || lost)
                read_one(look, one);
            open += !one->stable;
        }
        if ((tries && !sample(look, err)) || !place_running(look, &missing, err))
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
    /* The C module was loaded since the target was opened. */
    if (prb_proc_live(proc) && prb_modules_init(&modules, proc, NULL))
        (void)prb_asyncio_offsets_apply(&modules, py->mem, &py->layout);
}

static bool take_runtime(struct prb_async_box *box, struct prb_look *look, struct prb_error *err)
{
    PRB_AUTO(async_look)
    struct prb_async_look async = {.look = *look,
                                   .box = box,
                                   .frames_left = PRB_ASYNC_FRAMES_MAX,
                                   .rows_left = PRB_ASYNC_FRAMES_MAX};
    prb_codes_new_reading(look->runtime->py);
    prb_objects_clear(look->runtime->objects);
    prb_async_prepare(look->target, look->runtime);
    if (!sample(&async, err))
        return false;
    prb_look_folders(&async.look);
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
        struct prb_look look = {.target = target,
                                .runtime = &target->runtimes[i],
                                .options = &options,
                                .tasks = &threads,
                                .covered = covered,
                                .box = &box->rows};
        if (!take_runtime(box, &look, err))
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
    prb_look_time(target, &tasks->time);
    prb_look_info(&box->rows.arena, &target->info, &tasks->target);
    bool good = take_all(target, box, err);
    if (!prb_proc_check(target->proc, err) || !good)
        return NULL;
    return PRB_STEAL(tasks);
}
