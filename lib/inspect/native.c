/*
 * Native frames: each thread's native stack is taken at one moment with its Python chain,
 * all are named together, then each is merged (native/native.h).
 */
#include <string.h>

#include "base/file.h"
#include "inspect/reading.h"

#define MISSING_NAMED 6 /* files in a warning */
#define MOMENT_TRIES 4  /* takes of one thread until chain and native stack are of one moment */

struct taken {
    struct prb_thread_copy copy;
    struct prb_native_stack stack;
    bool have;
    bool torn; /* the Python chain moved between its reading and the copy */
};

struct prb_native_reading {
    struct taken *items; /* parallel to raw->threads */
    struct prb_native_stack *stacks;
    size_t count;
};

void prb_native_reading_free(struct prb_native_reading *native)
{
    if (!native)
        return;
    for (size_t i = 0; native->items && i < native->count; i++)
        prb_thread_copy_deinit(&native->items[i].copy);
    free(native->items);
    free(native->stacks);
    free(native);
}

static struct prb_native_reading *native_look_new(size_t count, struct prb_error *err)
{
    PRB_AUTO(prb_native_reading) struct prb_native_reading *native = calloc(1, sizeof *native);
    if (native) {
        native->items = calloc(count + 1, sizeof *native->items);
        native->stacks = calloc(count + 1, sizeof *native->stacks);
        native->count = count;
    }
    if (!native || !native->items || !native->stacks)
        return PRB_NULL(prb_nomem(err));
    return PRB_STEAL(native);
}

static void note(struct prb_reading *reading, pid_t tid, const struct prb_thread_copy *copy)
{
    prb_target_save_registers(reading->target, tid, &copy->registers);
    if (copy->stopped > reading->box->stacks.longest_stop)
        reading->box->stacks.longest_stop = copy->stopped;
}

/* ---- Python threads ---- */

struct moment {
    struct prb_reading *reading;
    size_t thread;
    bool read; /* the chain was read while the thread was stopped */
};

static void read_chain(void *context)
{
    struct moment *moment = context;
    moment->read = prb_sampler_reread(moment->reading->runtime->sampler, moment->thread, NULL);
}

/* A stopped thread's chain is read while it is stopped; a blocked one's is read again after, and
 * must be the same. */
static void take_one(struct prb_reading *reading, size_t i, struct taken *taken)
{
    const struct prb_task *task = reading->facts[i].task;
    struct prb_unwinder *unwinder = reading->target->unwinder;
    struct moment moment = {reading, i, false};
    for (int tries = 0; tries < MOMENT_TRIES; tries++) {
        prb_thread_copy_deinit(&taken->copy);
        taken->copy = (struct prb_thread_copy){0};
        moment.read = false;
        taken->have = prb_thread_unwind(unwinder, reading->target->proc, task->tid,
                                        !reading->options->untouched, read_chain, &moment,
                                        &taken->copy, &taken->stack, NULL);
        if (!taken->have)
            return;
        note(reading, task->tid, &taken->copy);
        taken->torn = !moment.read && prb_proc_live(reading->target->proc) &&
                      !prb_sampler_unchanged(reading->runtime->sampler, i, true);
        if (!taken->torn)
            return;
    }
}

/* A snapshot holds what was asked for when it was taken. */
static void warn_without_registers(struct prb_reading *reading)
{
    if (prb_proc_is_snapshot(reading->target->proc))
        reading->box->stacks.warning = "this snapshot holds no registers: it was taken without "
                                       "--native, so no native frames stand in it";
}

/* Of a core: without a file its frames cannot be unwound or named. */
static void warn_of_missing_files(struct prb_reading *reading,
                                  const struct prb_native_stack *stacks, size_t count)
{
    PRB_AUTO(prb_buf) struct prb_buf names = {0};
    const struct prb_module *told[MISSING_NAMED];
    size_t n = 0;
    if (prb_proc_exists(reading->target->proc))
        return;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < stacks[i].count && n < MISSING_NAMED; k++) {
            struct prb_module *module = stacks[i].frames[k].module;
            size_t at = 0;
            while (at < n && told[at] != module)
                at++;
            if (!module || at < n || prb_modules_elf(&reading->target->modules, module, NULL))
                continue;
            prb_buf_addf(&names, "%s%s", n ? ", " : "", prb_base_name(module->path));
            told[n++] = module;
        }
    if (n && prb_buf_ok(&names))
        reading->box->stacks.warning =
            prb_arena_printf(&reading->box->arena,
                             "native frames are missing or have no names, as these files are not "
                             "here (--sysroot): %s",
                             names.data);
}

struct prb_native_reading *prb_native_reading_take(struct prb_reading *reading,
                                                   struct prb_error *err)
{
    struct prb_unwinder *unwinder = prb_target_unwinder(reading->target, err);
    size_t count = reading->raw->thread_count, named = 0;
    PRB_AUTO(prb_native_reading)
    struct prb_native_reading *native = unwinder ? native_look_new(count, err) : NULL;
    if (!native)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const struct prb_task *task = reading->facts[i].task;
        if (task && prb_reading_wants(reading, reading->raw->threads[i].thread_id, task))
            take_one(reading, i, &native->items[i]);
    }
    for (size_t i = 0; i < count; i++)
        if (native->items[i].have)
            native->stacks[named++] = native->items[i].stack;
    if (count && !named)
        warn_without_registers(reading);
    warn_of_missing_files(reading, native->stacks, named);
    prb_unwinder_name(unwinder, native->stacks, named, reading->options->source_lines);
    return PRB_STEAL(native);
}

/* The raw thread, then the same kernel thread's in other interpreters; NULL: out of memory. */
static const struct prb_raw_thread **on_one_thread(const struct prb_reading *reading, size_t i,
                                                   size_t *count_out)
{
    const struct prb_raw_stacks *raw = reading->raw;
    const struct prb_raw_thread **list = malloc(raw->thread_count * sizeof *list);
    if (!list)
        return NULL;
    size_t count = 0;
    list[count++] = &raw->threads[i];
    for (size_t k = 0; k < raw->thread_count; k++)
        if (k != i && reading->facts[k].task == reading->facts[i].task)
            list[count++] = &raw->threads[k];
    *count_out = count;
    return list;
}

static void warn_unmerged(struct prb_reading *reading)
{
    reading->box->stacks.warning = "some stacks could not be merged by their anchors: their native "
                                   "frames stand before the Python ones";
}

bool prb_native_reading_rows(struct prb_reading *reading, struct prb_native_reading *native,
                             size_t i, struct prb_thread *thread, struct prb_error *err)
{
    struct taken *taken = &native->items[i];
    const struct prb_raw_thread *raw = &reading->raw->threads[i];
    struct prb_merged_row *rows = NULL;
    size_t count = 0, list_count = 0;
    bool sure = true;
    if (!taken->have)
        return prb_fail(err, PRB_NOT_FOUND, "no native stack");
    PRB_AUTO_FREE const struct prb_raw_thread **list = on_one_thread(reading, i, &list_count);
    if (!list)
        return prb_nomem(err);
    if (!prb_merge(reading->target->unwinder, reading->runtime->py, &taken->copy, &taken->stack,
                   list, list_count, &rows, &count, &sure, err) ||
        !(thread->frames = prb_reading_rows(reading, count, err)))
        return false;
    for (size_t k = 0; k < count; k++)
        thread->frames[thread->frame_count++] =
            rows[k].python ? prb_reading_python_row(reading, rows[k].python)
                           : prb_reading_native_row(reading, rows[k].native);
    if (raw->broken.why)
        thread->frames[thread->frame_count++] = prb_reading_broken_chain(reading, &raw->broken);
    if (!sure)
        warn_unmerged(reading);
    thread->unstable |= taken->torn;
    return true;
}

/* ---- threads without Python ---- */

static bool add_native_thread(struct prb_reading *reading, const struct prb_task *task,
                              const struct prb_native_stack *stack, struct prb_error *err)
{
    struct prb_thread *thread = prb_reading_thread(reading, err);
    if (!thread)
        return false;
    prb_reading_task(reading, task, thread);
    thread->name = thread->comm;
    if (!(thread->frames = prb_reading_rows(reading, stack->count, err)))
        return false;
    for (size_t i = 0; i < stack->count; i++)
        thread->frames[thread->frame_count++] = prb_reading_native_row(reading, &stack->frames[i]);
    reading->box->stacks.thread_count++;
    return true;
}

bool prb_native_threads(struct prb_reading *reading, struct prb_error *err)
{
    struct prb_unwinder *unwinder = prb_target_unwinder(reading->target, err);
    const struct prb_tasks *tasks = reading->tasks;
    PRB_AUTO_FREE struct prb_native_stack *stacks = calloc(tasks->count + 1, sizeof *stacks);
    PRB_AUTO_FREE size_t *owners = calloc(tasks->count + 1, sizeof *owners);
    size_t count = 0;
    if (!unwinder)
        return false;
    if (!stacks || !owners)
        return prb_nomem(err);
    for (size_t i = 0; i < tasks->count; i++) {
        PRB_AUTO(prb_thread_copy) struct prb_thread_copy copy = {0};
        if (reading->covered[i] || !prb_reading_wants(reading, 0, &tasks->items[i]))
            continue;
        /* A thread that ended meanwhile is not there any more. */
        if (!prb_thread_unwind(unwinder, reading->target->proc, tasks->items[i].tid,
                               !reading->options->untouched, NULL, NULL, &copy, &stacks[count],
                               NULL))
            continue;
        note(reading, tasks->items[i].tid, &copy);
        owners[count++] = i;
    }
    prb_unwinder_name(unwinder, stacks, count, reading->options->source_lines);
    for (size_t i = 0; i < count; i++)
        if (!add_native_thread(reading, &tasks->items[owners[i]], &stacks[i], err))
            return false;
    return true;
}
