/*
 * Makes the rows of tasks: names, loops and their threads, stacks, and which task waits for which.
 * All strings are in the result's arena.
 */
#include <string.h>

#include "inspect/async.h"
#include "py/object/reader.h"

#define LOOPS_MAX 1024  /* that are read */
#define BETWEEN_MAX 256 /* futures between a task and those that wait for it */
#define NAME_CHARACTERS 200

/* ---- event loops ---- */

struct loop {
    prb_addr addr;
    const char *type;
    size_t thread; /* in raw; SIZE_MAX: not known */
};

struct loops {
    struct loop *items;
    size_t count, cap, last;
};

static const char *type_name(struct prb_async_reading *reading, prb_addr object)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!object || !prb_object_type_name(reading->base.runtime->objects, object, &text, NULL) ||
        !text.data)
        return NULL;
    return prb_arena_strdup(&reading->box->rows.arena, text.data);
}

/* Where a loop runs: the thread knows (3.14+), or the loop (asyncio's own, while it runs). */
static size_t thread_of_loop(struct prb_async_reading *reading, prb_addr loop)
{
    struct prb_objects *objects = reading->base.runtime->objects;
    const struct prb_raw_stacks *raw = reading->base.raw;
    prb_addr ident = 0;
    int64_t number = 0;
    uint64_t its = 0;
    for (size_t i = 0; i < raw->thread_count; i++)
        if (PRB_GET(objects, raw->threads[i].tstate, thread, asyncio_loop, &its) && its == loop)
            return i;
    if (!prb_attribute_get(objects, loop, "_thread_id", &ident, NULL) || !ident ||
        prb_object_kind(objects, ident, NULL) != PRB_OBJ_INT ||
        !prb_object_int(objects, ident, &number, NULL))
        return SIZE_MAX;
    for (size_t i = 0; i < raw->thread_count; i++)
        if (raw->threads[i].thread_id == (uint64_t)number)
            return i;
    return SIZE_MAX;
}

/* Borrowed until the next call; NULL: there are too many. */
static struct loop *loop_at(struct prb_async_reading *reading, struct loops *loops, prb_addr addr)
{
    if (loops->last < loops->count && loops->items[loops->last].addr == addr)
        return &loops->items[loops->last];
    for (size_t i = 0; i < loops->count; i++)
        if (loops->items[i].addr == addr) {
            loops->last = i;
            return &loops->items[i];
        }
    if (loops->count >= LOOPS_MAX || !PRB_GROW(loops->items, loops->count, loops->cap))
        return NULL;
    loops->last = loops->count;
    loops->items[loops->count++] =
        (struct loop){addr, type_name(reading, addr), thread_of_loop(reading, addr)};
    return &loops->items[loops->last];
}

static void fill_loop(struct prb_async_reading *reading, struct loops *loops,
                      const struct prb_async_one *one, struct prb_async_task *task)
{
    struct loop *loop = loop_at(reading, loops, one->raw.loop);
    task->loop = one->raw.loop;
    if (loop && one->thread != SIZE_MAX)
        loop->thread = one->thread;
    task->loop_type = loop ? loop->type : NULL;
}

static void fill_thread(struct prb_async_reading *reading, struct loops *loops,
                        struct prb_async_task *task)
{
    struct loop *loop = loop_at(reading, loops, task->loop);
    if (!loop || loop->thread == SIZE_MAX)
        return;
    const struct prb_thread_facts *facts = &reading->base.facts[loop->thread];
    task->thread_id = reading->base.raw->threads[loop->thread].thread_id;
    task->thread_name = facts->name;
    task->os_thread_id = facts->task ? facts->task->tid : 0;
}

/* ---- one task ---- */

/* Why the walk broke, as one row. */
static void add_broken(struct prb_async_reading *reading, const struct prb_error *err,
                       struct prb_async_task *task)
{
    task->frames[task->frame_count++] = prb_reading_broken_row(&reading->base, err);
}

static bool fill_frames(struct prb_async_reading *reading, const struct prb_async_one *one,
                        struct prb_async_task *task, struct prb_error *err)
{
    const struct prb_awaits *awaits = &one->raw.awaits;
    bool placed = one->thread != SIZE_MAX;
    const struct prb_raw_thread *thread = placed ? &reading->base.raw->threads[one->thread] : NULL;
    size_t count = placed ? one->frame + 1 : awaits->count;
    struct prb_error cut = {0};
    if (placed && count > reading->rows_left) {
        prb_fail(&cut, PRB_CORRUPT, "more frames of running tasks in all than the limit of %d",
                 PRB_ASYNC_FRAMES_MAX);
        count = reading->rows_left;
    }
    reading->rows_left -= placed ? count : 0;
    task->frames = prb_reading_rows(&reading->base, count, err);
    if (!task->frames)
        return false;
    if (awaits->broken || cut.code)
        add_broken(reading, awaits->broken ? &awaits->error : &cut, task);
    for (size_t i = 0; i < count; i++)
        task->frames[task->frame_count++] = prb_reading_python_row(
            &reading->base, placed ? &thread->frames[i] : &awaits->frames[count - 1 - i]);
    return true;
}

static const char *coroutine_name(struct prb_async_reading *reading, prb_addr coroutine)
{
    struct prb_objects *objects = reading->base.runtime->objects;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    uint64_t name = 0;
    prb_addr code_addr = prb_coroutine_code(objects, coroutine);
    if (!code_addr) /* not CPython's own coroutine but, say, Cython's */
        return type_name(reading, coroutine);
    if (PRB_GET(objects, coroutine, gen, qualname, &name) &&
        prb_object_str(objects, name, NAME_CHARACTERS, &text, NULL) && text.data)
        return prb_arena_strdup(&reading->box->rows.arena, text.data);
    const struct prb_code_object *code =
        prb_code_get(reading->base.runtime->py, code_addr, false, NULL);
    return code ? prb_arena_strdup(&reading->box->rows.arena, code->name) : NULL;
}

static const char *short_class(struct prb_async_reading *reading, prb_addr object)
{
    struct prb_object_type *type = prb_type_of(reading->base.runtime->objects, object, NULL);
    return type ? prb_arena_strdup(&reading->box->rows.arena, prb_type_short_name(type)) : NULL;
}

static bool add_row(struct prb_async_reading *reading, struct loops *loops,
                    const struct prb_async_one *one, struct prb_async_task *task,
                    struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    bool runs = one->raw.awaits.state == PRB_COROUTINE_EXECUTING;
    *task = (struct prb_async_task){
        .id = one->raw.addr,
        .cancels = one->raw.cancels,
        .interpreter = reading->base.raw->interpreters[one->interpreter].id,
        .unstable = !one->stable || (runs && one->thread == SIZE_MAX),
    };
    if (prb_async_task_name(reading->base.runtime->objects, &one->raw, &name) && name.data)
        task->name = prb_arena_strdup(&reading->box->rows.arena, name.data);
    task->coroutine = coroutine_name(reading, one->raw.coroutine);
    task->state = runs                 ? PRB_ASYNC_RUNNING
                  : one->raw.waits_for ? PRB_ASYNC_WAITING
                                       : PRB_ASYNC_READY;
    if (one->raw.waits_for && !runs)
        task->waits_for = short_class(reading, one->raw.waits_for);
    fill_loop(reading, loops, one, task);
    return fill_frames(reading, one, task, err);
}

/* ---- which task waits for which ---- */

struct place {
    prb_addr addr;
    size_t index; /* in tasks */
};

static int by_address(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

struct linking {
    struct prb_async_reading *reading;
    const struct place *places;
    size_t place_count;
    struct prb_async_task *task; /* whose waiters are searched */
    size_t number;               /* its number, from 1 */
    size_t cap;
    prb_addr between[BETWEEN_MAX]; /* futures still to follow */
    size_t between_count;
    size_t *found_for; /* by waiter: 1 + the task that it was last found for */
    size_t links_left;
    bool failed;
};

static bool note_waiter(void *context, prb_addr waiter)
{
    struct linking *linking = context;
    struct prb_async_task *task = linking->task;
    struct place key = {.addr = waiter};
    if (!linking->links_left)
        return false;
    linking->links_left--;
    const struct place *place =
        bsearch(&key, linking->places, linking->place_count, sizeof key, by_address);
    if (!place) {
        for (size_t i = 0; i < linking->between_count; i++)
            if (linking->between[i] == waiter)
                return true;
        if (linking->between_count < BETWEEN_MAX)
            linking->between[linking->between_count++] = waiter;
        return true;
    }
    if (linking->found_for[place - linking->places] == linking->number)
        return true;
    linking->found_for[place - linking->places] = linking->number;
    if (!PRB_GROW(task->awaited_by, task->awaited_by_count, linking->cap)) {
        linking->failed = true;
        return false;
    }
    task->awaited_by[task->awaited_by_count++] = place->index;
    return true;
}

static bool link_task(struct linking *linking, struct prb_async_task *task)
{
    struct prb_objects *objects = linking->reading->base.runtime->objects;
    linking->task = task;
    linking->number++;
    linking->cap = linking->between_count = 0;
    prb_async_waiters_each(objects, task->id, note_waiter, linking);
    for (size_t i = 0; i < linking->between_count && !linking->failed; i++)
        prb_async_waiters_each(objects, linking->between[i], note_waiter, linking);
    return !linking->failed;
}

/* The links in the other direction: count them, then fill them in. */
static bool turn_round(struct prb_async_task *items, size_t first, size_t count)
{
    for (size_t i = first; i < count; i++)
        for (size_t k = 0; k < items[i].awaited_by_count; k++)
            items[items[i].awaited_by[k]].awaits_count++;
    for (size_t i = first; i < count; i++) {
        if (!items[i].awaits_count)
            continue;
        items[i].awaits = calloc(items[i].awaits_count, sizeof *items[i].awaits);
        if (!items[i].awaits)
            return false;
        items[i].awaits_count = 0;
    }
    for (size_t i = first; i < count; i++)
        for (size_t k = 0; k < items[i].awaited_by_count; k++) {
            struct prb_async_task *waiter = &items[items[i].awaited_by[k]];
            waiter->awaits[waiter->awaits_count++] = i;
        }
    return true;
}

static bool link_all(struct prb_async_reading *reading, size_t first, struct prb_error *err)
{
    struct prb_async_tasks *tasks = &reading->box->tasks;
    size_t count = tasks->count - first;
    PRB_AUTO_FREE struct place *places = calloc(count + 1, sizeof *places);
    PRB_AUTO_FREE size_t *found_for = calloc(count + 1, sizeof *found_for);
    if (!places || !found_for)
        return prb_nomem(err);
    for (size_t i = 0; i < count; i++)
        places[i] = (struct place){tasks->items[first + i].id, first + i};
    qsort(places, count, sizeof *places, by_address);
    struct linking linking = {.reading = reading,
                              .places = places,
                              .place_count = count,
                              .found_for = found_for,
                              .links_left = PRB_ASYNC_LINKS_MAX};
    for (size_t i = first; i < tasks->count; i++)
        if (!link_task(&linking, &tasks->items[i]))
            return prb_nomem(err);
    if (!linking.links_left)
        tasks->warning = "more tasks wait for others than are followed: some links are missing";
    return turn_round(tasks->items, first, tasks->count) || prb_nomem(err);
}

/* ---- all tasks ---- */

/* The number in a name that asyncio gave; other names sort last. */
static unsigned long long number_of(const struct prb_async_task *task)
{
    unsigned long long number = 0;
    char more;
    return task->name && sscanf(task->name, "Task-%19llu%c", &number, &more) == 1 ? number
                                                                                  : UINT64_MAX;
}

static int in_order(const void *a, const void *b)
{
    const struct prb_async_task *x = a, *y = b;
    unsigned long long left = number_of(x), right = number_of(y);
    if (x->loop != y->loop)
        return x->loop < y->loop ? -1 : 1;
    if (left != right)
        return left < right ? -1 : 1;
    int order = strcmp(x->name ? x->name : "", y->name ? y->name : "");
    return order ? order : x->id < y->id ? -1 : x->id > y->id;
}

bool prb_async_rows(struct prb_async_reading *reading, struct prb_error *err)
{
    struct prb_async_tasks *tasks = &reading->box->tasks;
    size_t first = tasks->count;
    struct loops loops = {0};
    struct prb_async_task *grown =
        realloc(tasks->items, (first + reading->count + 1) * sizeof *grown);
    if (!grown)
        return prb_nomem(err);
    tasks->items = grown;
    bool good = true;
    for (size_t i = 0; i < reading->count && good; i++) {
        if (reading->ones[i].gone || !reading->ones[i].raw.pending)
            continue;
        good = add_row(reading, &loops, &reading->ones[i], &tasks->items[tasks->count], err);
        tasks->count += good;
    }
    for (size_t i = first; i < tasks->count && good; i++)
        fill_thread(reading, &loops, &tasks->items[i]);
    free(loops.items);
    if (tasks->count > first)
        qsort(&tasks->items[first], tasks->count - first, sizeof *tasks->items, in_order);
    return good && link_all(reading, first, err);
}
