/*
 * The tasks of asyncio in the stacks of a profile, by the rule of inspect/async_stacks.c: between
 * the frames of an event loop and those of the task that it runs come the tasks that wait for that
 * one, the outermost first, each with its own frames.
 *
 * The tasks are read a moment after the stack.  So a task counts as running there only if its
 * coroutine's frame is in that stack, and the tasks that wait for it only if it still runs then.
 */
#include <ctype.h>
#include <string.h>

#include "inspect/async.h"
#include "py/asyncio.h"
#include "sample/process.h"

#define WAITERS_MAX 100  /* tasks one below the other */
#define FUTURES_MAX 256  /* between a task and the one that waits for it */
#define FRAMES_MAX 10000 /* of all of them */
#define NAMES_MAX 1000   /* tasks that are shown by name; later ones by their coroutine */
#define NAMING_TRIES 3
#define LOOK_NS 1000000000 /* between two searches for asyncio while it is not imported */

PRB_DEFINE_AUTO(async_raw, struct prb_async_raw, prb_async_raw_deinit)

/* The task that runs, then the one that waits for it, and so on. */
struct line {
    struct prb_objects *objects;
    const struct prb_raw_thread *thread;
    struct prb_async_raw tasks[WAITERS_MAX];
    size_t count;
    size_t left;         /* frames that may be read */
    struct prb_buf name; /* of the first */
};

void prb_async_begin(struct prb_sampled_process *process, size_t runtime, uint64_t now)
{
    struct prb_runtime_names *naming = &process->names[runtime];
    const struct prb_runtime *one = &process->target->runtimes[runtime];
    const struct prb_raw_stacks *raw = prb_sampler_last(one->sampler);
    prb_addr module = 0;
    prb_objects_clear(one->objects);
    if (naming->asyncio || now < naming->asyncio_after || !raw->interpreter_count)
        return;
    naming->asyncio_after = now + LOOK_NS;
    naming->asyncio = prb_module_get(one->objects, raw->interpreters[0].addr, "asyncio.tasks",
                                     "Task", &module, NULL) &&
                      module;
    if (naming->asyncio)
        prb_async_prepare(process->target, one);
}

/* ---- who waits for the task that runs ---- */

static bool stands_in(const struct prb_raw_thread *thread, const struct prb_raw_frame *frame)
{
    for (size_t i = 0; i < thread->frame_count; i++)
        if (thread->frames[i].frame == frame->frame)
            return thread->frames[i].code == frame->code;
    return false;
}

static bool take_running(void *context, prb_addr task)
{
    struct line *line = context;
    struct prb_async_raw *raw = &line->tasks[0];
    if (prb_async_task_read(line->objects, task, &line->left, raw, NULL) && raw->awaits.count &&
        raw->awaits.state == PRB_COROUTINE_EXECUTING &&
        stands_in(line->thread, &raw->awaits.frames[0]))
        line->count = 1;
    return !line->count;
}

static bool take_first(void *context, prb_addr waiter)
{
    *(prb_addr *)context = waiter;
    return false;
}

/* The task that waits for a task, also through futures such as gather's; 0: none. */
static prb_addr waiter_of(struct prb_objects *objects, prb_addr task)
{
    prb_addr at = task;
    for (size_t i = 0; i < FUTURES_MAX; i++) {
        prb_addr next = 0;
        prb_async_waiters_each(objects, at, take_first, &next);
        if (!next || prb_is_task(prb_future_kind(objects, next)))
            return next;
        at = next;
    }
    return 0;
}

static bool holds(const struct line *line, prb_addr task)
{
    for (size_t i = 0; i < line->count; i++)
        if (line->tasks[i].addr == task)
            return true; /* they wait for each other */
    return false;
}

static bool same_text(const struct prb_buf *a, const struct prb_buf *b)
{
    return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len) == 0);
}

/* The first task still runs: so those that wait for it did not move meanwhile.  Its name, which
 * asyncio numbers, shows that it is not a new task in the same memory. */
static bool still_runs(struct line *line)
{
    PRB_AUTO(async_raw) struct prb_async_raw now = {0};
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    prb_objects_clear(line->objects);
    if (!prb_async_task_read(line->objects, line->tasks[0].addr, &line->left, &now, NULL))
        return false;
    prb_async_task_name(line->objects, &now, &name);
    return prb_async_task_equal(&now, &line->tasks[0]) && same_text(&name, &line->name);
}

static void read_line(struct line *line, prb_addr interpreter, prb_addr tstate)
{
    line->count = 0;
    line->name.len = 0;
    prb_async_running_each(line->objects, interpreter, tstate, take_running, line);
    if (line->count)
        prb_async_task_name(line->objects, &line->tasks[0], &line->name);
    while (line->count && line->count < WAITERS_MAX) {
        prb_addr next = waiter_of(line->objects, line->tasks[line->count - 1].addr);
        if (!next || holds(line, next) ||
            !prb_async_task_read(line->objects, next, &line->left, &line->tasks[line->count], NULL))
            break;
        line->count++;
    }
    if (line->count && !still_runs(line))
        line->count = 0;
}

/* ---- rows ---- */

struct naming {
    struct prb_sampled_process *process;
    struct prb_sampled_thread *thread;
    struct prb_objects *objects;
    bool fresh; /* a code object was not known before */
};

static void add_row(struct naming *naming, uint32_t frame)
{
    struct prb_task_rows *between = &naming->thread->task_rows;
    if (!PRB_GROW(between->rows, between->count, between->cap))
        naming->process->box->failed = true;
    else
        between->rows[between->count++] = frame;
}

static const struct prb_code_object *code_at(struct naming *naming, prb_addr code)
{
    const struct prb_sampled_process *process = naming->process;
    uint32_t runtime = naming->thread->runtime;
    bool fresh = false;
    const struct prb_code_object *found =
        code ? prb_code_watched(process->target->runtimes[runtime].py,
                                process->names[runtime].codes, code, &fresh, NULL)
             : NULL;
    naming->fresh |= fresh;
    return found;
}

/* "Task-7": the number says nothing, and would make each task a stack of its own. */
static bool is_numbered(const char *name)
{
    static const char prefix[] = "Task-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    for (name += sizeof prefix - 1; isdigit((unsigned char)*name); name++)
        continue;
    return !*name;
}

/* A task's own name, or that of what it runs. */
static void add_marker(struct naming *naming, const struct prb_async_raw *task)
{
    struct prb_sampled_process *process = naming->process;
    struct prb_profile_box *box = process->box;
    PRB_AUTO(prb_buf) struct prb_buf name = {0}, text = {0};
    bool own = prb_async_task_name(naming->objects, task, &name) && name.data && name.len &&
               !is_numbered(name.data) && process->task_names < NAMES_MAX;
    const struct prb_code_object *code =
        own ? NULL : code_at(naming, prb_coroutine_code(naming->objects, task->coroutine));
    const char *called = own              ? name.data
                         : !code          ? "?"
                         : code->qualname ? code->qualname
                                          : code->name;
    prb_buf_addf(&text, "task %s", called);
    struct prb_profile_function function = {.kind = PRB_FRAME_TASK,
                                            .name = prb_profile_text(box, text.data)};
    size_t known = box->profile.function_count;
    function.qualname = function.name;
    add_row(naming, prb_profile_frame(box, prb_profile_function(box, &function), 0));
    process->task_names += own && box->profile.function_count > known;
}

static void add_frames(struct naming *naming, const struct prb_awaits *awaits)
{
    for (size_t i = 0; i < awaits->count; i++) {
        const struct prb_code_object *code = code_at(naming, awaits->frames[i].code);
        if (code)
            add_row(naming, prb_name_frame(naming->process, naming->thread->runtime, code,
                                           awaits->frames[i].instruction));
    }
}

/* False: a code object was new.  The line must be read again before it is believed. */
static bool name_line(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                      const struct line *line)
{
    struct prb_py *py = process->target->runtimes[thread->runtime].py;
    struct naming naming = {process, thread, line->objects, false};
    thread->task_rows.count = 0;
    prb_codes_next_sample(py, false);
    prb_view_refresh(&process->names[thread->runtime].codes, 1, NULL, NULL);
    for (size_t i = line->count; i-- > 0;) {
        add_marker(&naming, &line->tasks[i]);
        if (i)
            add_frames(&naming, &line->tasks[i].awaits);
    }
    return !naming.fresh;
}

/* Read the tasks that wait for the one that the thread runs. */
static void read_tasks(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                       size_t k)
{
    const struct prb_runtime *runtime = &process->target->runtimes[thread->runtime];
    const struct prb_raw_stacks *raw = prb_sampler_last(runtime->sampler);
    struct line line = {
        .objects = runtime->objects, .thread = &raw->threads[k], .left = FRAMES_MAX};
    prb_addr interpreter = raw->interpreters[line.thread->interpreter].addr;
    for (int tries = 0; tries < NAMING_TRIES; tries++) {
        if (tries)
            prb_objects_clear(line.objects);
        read_line(&line, interpreter, thread->tstate);
        if (!line.count || name_line(process, thread, &line)) {
            thread->task_rows.frame = line.count ? line.tasks[0].awaits.frames[0].frame : 0;
            break;
        }
    }
    for (size_t i = 0; i < WAITERS_MAX; i++)
        prb_async_raw_deinit(&line.tasks[i]);
    prb_buf_deinit(&line.name);
}

/* ---- stacks ---- */

uint32_t prb_async_add(struct prb_sampled_process *process, const struct prb_task_rows *between,
                       prb_addr frame, uint32_t node)
{
    if (!between->frame || between->frame != frame)
        return node;
    for (size_t i = 0; i < between->count; i++)
        node = prb_profile_node(process->box, node, between->rows[i]);
    return node;
}

uint32_t prb_async_stack(struct prb_sampled_process *process, struct prb_sampled_thread *thread,
                         size_t k)
{
    const struct prb_runtime *runtime = &process->target->runtimes[thread->runtime];
    const struct prb_raw_thread *raw = &prb_sampler_last(runtime->sampler)->threads[k];
    if (raw->unmoved && thread->with_tasks_of == thread->node)
        return thread->with_tasks;
    thread->with_tasks_of = thread->node;
    thread->task_rows.frame = 0;
    if (!process->names[thread->runtime].asyncio || !raw->frame_count || raw->broken.why ||
        thread->count != raw->frame_count)
        return thread->node;
    read_tasks(process, thread, k);
    if (!thread->task_rows.frame)
        return thread->node;
    uint32_t node = 0;
    for (size_t j = 0; j < thread->count; j++) {
        const struct prb_named_frame *named = &thread->chain[j];
        node = prb_async_add(process, &thread->task_rows, raw->frames[thread->count - 1 - j].frame,
                             node);
        if (named->code)
            node = prb_profile_node(
                process->box, node,
                prb_name_frame(process, thread->runtime, named->code, named->instruction));
    }
    return node;
}
