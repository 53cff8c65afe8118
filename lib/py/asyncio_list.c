/*
 * All tasks of an interpreter: the lists that run through them (3.14 and later), asyncio.tasks'
 * WeakSet of those that are on none, and its set of eager ones; and which of them run.  Sources:
 * Modules/_asynciomodule.c (all_tasks), Lib/asyncio/tasks.py, Include/internal/pycore_llist.h.
 */
#include <string.h>

#include "base/hash_map.h"
#include "py/asyncio.h"
#include "py/object/reader.h"

#define LIST_TRIES 8 /* a list whose tasks come and go meanwhile */

struct finding {
    struct prb_objects *objects;
    prb_async_task_fn *each;
    void *context;
    struct prb_hash_map seen; /* tasks by address; 1: seen */
    bool ended, whole;
};

/* ---- each once ---- */

static bool found(struct finding *finding, prb_addr task)
{
    if (!task)
        return true;
    struct prb_hash_slot *slot = prb_hash_map_add(&finding->seen, task);
    if (slot && slot->number)
        return true;
    if (slot)
        slot->number = 1;
    if (!slot || finding->seen.count > PRB_ASYNC_TASKS_MAX) {
        finding->whole = false;
        finding->ended = true;
    } else if (!finding->each(finding->context, task)) {
        finding->ended = true;
    }
    return !finding->ended;
}

/* ---- lists that run through the tasks ---- */

/* Follow one from its head; false: it broke, as a task left it meanwhile. */
static bool follow_once(struct finding *finding, prb_addr head)
{
    const struct prb_layout *layout = finding->objects->layout;
    prb_addr node = head;
    for (size_t steps = 0; steps <= PRB_ASYNC_TASKS_MAX; steps++) {
        uint64_t next = 0, back = 0;
        if (!PRB_GET(finding->objects, node, llist_node, next, &next))
            return false;
        if (!next && node == head)
            return true; /* never used */
        if (next == head)
            return true;
        if (!next || !PRB_GET(finding->objects, next, llist_node, prev, &back) || back != node)
            return false;
        if (!found(finding, next - (prb_addr)PRB_OFF(layout, asyncio_task, node)))
            return true;
        node = next;
    }
    return false;
}

static void follow(struct finding *finding, prb_addr head)
{
    for (int tries = 0; tries < LIST_TRIES; tries++) {
        if (finding->ended || follow_once(finding, head))
            return;
        prb_objects_clear(finding->objects);
    }
    finding->whole = false;
}

static void follow_lists(struct finding *finding, prb_addr interpreter,
                         const struct prb_raw_stacks *threads, size_t index)
{
    const struct prb_layout *layout = finding->objects->layout;
    if (!PRB_HAS(layout, interp, asyncio_tasks) || !PRB_HAS(layout, thread, asyncio_tasks))
        return;
    for (size_t i = 0; i < threads->thread_count && !finding->ended; i++)
        if (threads->threads[i].interpreter == index)
            follow(finding,
                   threads->threads[i].tstate + (prb_addr)PRB_OFF(layout, thread, asyncio_tasks));
    follow(finding, interpreter + (prb_addr)PRB_OFF(layout, interp, asyncio_tasks));
}

/* ---- sets ---- */

static bool found_item(void *context, prb_addr key, prb_addr item)
{
    (void)key;
    return found(context, item);
}

static bool found_weakly(void *context, prb_addr key, prb_addr reference)
{
    (void)key;
    struct finding *finding = context;
    uint64_t task = 0;
    if (PRB_GET(finding->objects, reference, weakref, object, &task) &&
        prb_object_kind(finding->objects, task, NULL) != PRB_OBJ_NONE)
        return found(finding, task);
    return true;
}

static void walk_set(struct finding *finding, prb_addr set, prb_item_fn *each)
{
    if (!prb_sequence_each(finding->objects, set, each, finding, NULL))
        finding->whole = false;
}

/* A WeakSet keeps its references in the set `data`. */
static void walk_weak_set(struct finding *finding, prb_addr weak_set)
{
    prb_addr data = 0;
    if (weak_set && prb_attribute_get(finding->objects, weak_set, "data", &data, NULL) && data)
        walk_set(finding, data, found_weakly);
}

void prb_async_tasks_each(struct prb_objects *objects, prb_addr interpreter,
                          const struct prb_raw_stacks *threads, size_t index,
                          prb_async_task_fn *each, void *context, bool *whole, bool *known)
{
    static const char *const weak_sets[] = {"_scheduled_tasks", "_all_tasks"};
    struct finding finding = {.objects = objects, .each = each, .context = context, .whole = true};
    prb_addr set = 0, eager = 0;
    follow_lists(&finding, interpreter, threads, index);
    for (size_t i = 0; i < 2 && !set; i++)
        (void)prb_module_get(objects, interpreter, "asyncio.tasks", weak_sets[i], &set, NULL);
    walk_weak_set(&finding, set);
    *known = set || PRB_HAS(objects->layout, interp, asyncio_tasks);
    if (!finding.ended &&
        prb_module_get(objects, interpreter, "asyncio.tasks", "_eager_tasks", &eager, NULL) &&
        eager)
        walk_set(&finding, eager, found_item);
    prb_hash_map_deinit(&finding.seen);
    *whole = finding.whole;
}

/* ---- those that run ---- */

struct running {
    prb_async_task_fn *each;
    void *context;
};

static bool runs_in_loop(void *context, prb_addr loop, prb_addr task)
{
    (void)loop;
    const struct running *running = context;
    return running->each(running->context, task);
}

void prb_async_running_each(struct prb_objects *objects, prb_addr interpreter, prb_addr tstate,
                            prb_async_task_fn *each, void *context)
{
    struct running running = {each, context};
    uint64_t task = 0;
    prb_addr tasks = 0;
    if (PRB_HAS(objects->layout, thread, asyncio_task)) {
        if (PRB_GET(objects, tstate, thread, asyncio_task, &task) && task)
            each(context, task);
        return;
    }
    if (prb_module_get(objects, interpreter, "asyncio.tasks", "_current_tasks", &tasks, NULL) &&
        tasks && prb_object_kind(objects, tasks, NULL) == PRB_OBJ_DICT)
        (void)prb_dict_each(objects, tasks, runs_in_loop, &running, NULL);
}
