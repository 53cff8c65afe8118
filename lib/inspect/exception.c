/*
 * The exception that a thread is busy with: on its way, being handled, or sys.last_exc; with what
 * it came from and the frames of its traceback. Sources: Include/cpython/pystate.h
 * (_PyErr_StackItem), pyerrors.h, traceback.h; PEP 3134.
 */
#include <string.h>

#include "inspect/message.h"
#include "inspect/target.h"
#include "inspect/traceback.h"
#include "py/code.h"
#include "py/object/reader.h"

#define HANDLED_MAX 256 /* handlers inside each other */

struct box {
    struct prb_exceptions exceptions; /* first */
    struct prb_arena arena;
    size_t cap;
};

struct reading {
    struct prb_objects *objects;
    struct prb_py *py;
    struct box *box;
};

void prb_exceptions_free(struct prb_exceptions *exceptions)
{
    struct box *box = (struct box *)exceptions;
    if (!box)
        return;
    free(exceptions->items);
    prb_arena_deinit(&box->arena);
    free(box);
}
PRB_DEFINE_AUTO_PTR(prb_exceptions, struct prb_exceptions, prb_exceptions_free)

/* ---- its traceback ---- */

struct frames {
    struct reading *reading;
    struct prb_frame *items;
    size_t count, cap;
    bool full; /* no memory for more */
};

static bool add_frame(void *context, const struct prb_traceback_entry *entry)
{
    struct frames *frames = context;
    struct prb_py *py = frames->reading->py;
    struct prb_arena *arena = &frames->reading->box->arena;
    const struct prb_code_object *code = prb_code_get(py, entry->raw.code, false, NULL);
    frames->full = code && !PRB_GROW(frames->items, frames->count, frames->cap);
    if (!code || frames->full)
        return false;
    struct prb_position at = prb_code_position(py, code, entry->raw.instruction);
    frames->items[frames->count++] = (struct prb_frame){
        .kind = PRB_FRAME_PYTHON,
        .name = prb_arena_strdup(arena, code->name),
        .qualname = prb_arena_strdup(arena, code->qualname ? code->qualname : code->name),
        .filename = prb_arena_strdup(arena, code->filename),
        .line = at.line ? at.line : entry->line,
        .column = at.column,
        .end_line = at.end_line,
        .end_column = at.end_column,
        .first_line = code->first_line,
        .addr = entry->object,
        .code = entry->raw.code,
        .instruction = entry->raw.instruction,
    };
    return true;
}

static bool read_traceback(struct reading *reading, struct prb_exception *out)
{
    struct frames frames = {.reading = reading};
    prb_traceback_each(reading->objects, out->addr, add_frame, &frames);
    PRB_AUTO_FREE struct prb_frame *items = frames.items;
    if (frames.full)
        return false;
    out->frames = prb_arena_alloc(&reading->box->arena, (frames.count + 1) * sizeof *items);
    if (out->frames && frames.count)
        memcpy(out->frames, items, frames.count * sizeof *items);
    out->frame_count = out->frames ? frames.count : 0;
    return out->frames != NULL;
}

/* ---- the exception ---- */

static bool add_exception(struct reading *reading, prb_addr addr, enum prb_exception_state state,
                          const char *link, struct prb_error *err)
{
    struct box *box = reading->box;
    PRB_AUTO(prb_buf) struct prb_buf type = {0}, message = {0};
    if (!PRB_GROW(box->exceptions.items, box->exceptions.count, box->cap))
        return prb_nomem(err);
    struct prb_exception *out = &box->exceptions.items[box->exceptions.count++];
    (void)prb_object_type_name(reading->objects, addr, &type, NULL);
    prb_exception_message(reading->objects, addr, &message);
    *out = (struct prb_exception){
        .state = state,
        .type = prb_arena_strdup(&box->arena, type.data ? type.data : "?"),
        .message = prb_arena_strndup(&box->arena, message.data ? message.data : "", message.len),
        .link = link,
        .addr = addr,
    };
    return read_traceback(reading, out) || prb_nomem(err);
}

static bool is_exception(struct reading *reading, prb_addr addr)
{
    return addr && prb_object_kind(reading->objects, addr, NULL) == PRB_OBJ_EXCEPTION;
}

static bool seen(const struct reading *reading, prb_addr addr)
{
    for (size_t i = 0; i < reading->box->exceptions.count; i++)
        if (reading->box->exceptions.items[i].addr == addr)
            return true;
    return false;
}

/* The exception and what it came from: its cause, else its context (PEP 3134). */
static bool add_chain(struct reading *reading, prb_addr addr, enum prb_exception_state state,
                      struct prb_error *err)
{
    const char *link = NULL;
    while (is_exception(reading, addr) && !seen(reading, addr) &&
           reading->box->exceptions.count < PRB_EXCEPTIONS_MAX) {
        uint64_t cause = 0, context = 0;
        if (!add_exception(reading, addr, state, link, err))
            return false;
        (void)PRB_GET(reading->objects, addr, exception, cause, &cause);
        (void)PRB_GET(reading->objects, addr, exception, context, &context);
        link = cause ? "cause" : "context";
        addr = cause ? cause : context;
    }
    return true;
}

/* ---- where a thread has it ---- */

/* The innermost handler's: _PyErr_StackItem, those of generators lie one above the other. */
static prb_addr handled(struct reading *reading, prb_addr tstate)
{
    uint64_t item, value;
    if (!PRB_GET(reading->objects, tstate, thread, exc_info, &item))
        return 0;
    for (int i = 0; item && i < HANDLED_MAX; i++) {
        if (!PRB_GET(reading->objects, item, exc_stack_item, exc_value, &value))
            return 0;
        if (is_exception(reading, value))
            return value;
        if (!PRB_GET(reading->objects, item, exc_stack_item, previous, &item))
            return 0;
    }
    return 0;
}

static prb_addr last_one(struct reading *reading, prb_addr interpreter)
{
    static const char *const names[] = {"last_exc", "last_value"};
    uint64_t sysdict;
    if (!PRB_GET(reading->objects, interpreter, interp, sysdict, &sysdict))
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        prb_addr value = 0;
        if (prb_dict_get(reading->objects, sysdict, names[i], &value, NULL) &&
            is_exception(reading, value))
            return value;
    }
    return 0;
}

static bool of_thread(struct reading *reading, const struct prb_raw_stacks *raw, size_t i,
                      bool is_main, struct prb_error *err)
{
    const struct prb_raw_thread *thread = &raw->threads[i];
    uint64_t raised;
    if (PRB_GET(reading->objects, thread->tstate, thread, current_exception, &raised) &&
        is_exception(reading, raised))
        return add_chain(reading, raised, PRB_EXCEPTION_RAISED, err);
    prb_addr value = handled(reading, thread->tstate);
    if (value)
        return add_chain(reading, value, PRB_EXCEPTION_HANDLED, err);
    value = is_main ? last_one(reading, raw->interpreters[thread->interpreter].addr) : 0;
    return !value || add_chain(reading, value, PRB_EXCEPTION_LAST, err);
}

bool prb_thread_handles_exception(const struct prb_runtime *runtime, prb_addr tstate)
{
    struct reading reading = {runtime->objects, runtime->py, NULL};
    uint64_t raised;
    prb_objects_clear(runtime->objects);
    return (PRB_GET(reading.objects, tstate, thread, current_exception, &raised) &&
            is_exception(&reading, raised)) ||
           handled(&reading, tstate);
}

/* ---- which thread ---- */

/* The threads of a runtime as they are now, and what each is. */
struct threads {
    const struct prb_raw_stacks *raw;
    struct prb_tasks tasks;
    struct prb_arena arena;
    struct prb_thread_facts *facts;
};

static void threads_deinit(struct threads *threads)
{
    prb_tasks_deinit(&threads->tasks);
    prb_arena_deinit(&threads->arena);
    free(threads->facts);
}
PRB_DEFINE_AUTO(threads, struct threads, threads_deinit)

static bool take_threads(struct prb_target *target, struct prb_runtime *runtime,
                         struct threads *out)
{
    prb_codes_new_reading(runtime->py);
    prb_objects_clear(runtime->objects);
    out->raw = prb_sampler_take(runtime->sampler, prb_proc_live(target->proc) ? 0 : 1, NULL);
    if (!out->raw || !prb_proc_tids(target->proc, &out->tasks, NULL) ||
        !(out->facts = calloc(out->raw->thread_count + 1, sizeof *out->facts)))
        return false;
    prb_threads_identify(target, runtime, out->raw, &out->tasks, &out->arena, out->facts);
    return true;
}

static pid_t tid_of(const struct threads *threads, size_t i)
{
    return threads->facts[i].task ? threads->facts[i].task->tid : 0;
}

/* The exceptions of one thread: an empty list when it has none. */
static struct prb_exceptions *take_one(struct prb_target *target, struct prb_runtime *runtime,
                                       const struct threads *threads, size_t i,
                                       struct prb_error *err)
{
    struct box *box = calloc(1, sizeof *box);
    if (!box)
        return PRB_NULL(prb_nomem(err));
    PRB_AUTO(prb_exceptions) struct prb_exceptions *exceptions = &box->exceptions;
    struct reading reading = {runtime->objects, runtime->py, box};
    bool is_main = tid_of(threads, i) == prb_proc_pid(target->proc);
    return of_thread(&reading, threads->raw, i, is_main, err) ? PRB_STEAL(exceptions) : NULL;
}

struct prb_exceptions *prb_exceptions_take(struct prb_target *target, uint64_t thread,
                                           struct prb_error *err)
{
    for (size_t i = 0; i < target->runtime_count; i++) {
        PRB_AUTO(threads) struct threads threads = {0};
        if (!take_threads(target, &target->runtimes[i], &threads))
            continue;
        for (size_t k = 0; k < threads.raw->thread_count; k++)
            if (threads.raw->threads[k].thread_id == thread ||
                (threads.facts[k].task && (uint64_t)tid_of(&threads, k) == thread))
                return take_one(target, &target->runtimes[i], &threads, k, err);
    }
    return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "no Python thread %llu in process %d",
                             (unsigned long long)thread, (int)target->info.pid));
}

/* ---- all threads ---- */

void prb_exceptions_all_free(struct prb_exceptions **all, size_t count)
{
    for (size_t i = 0; all && i < count; i++)
        prb_exceptions_free(all[i]);
    free(all);
}

static size_t index_of(const struct prb_stacks *stacks, uint64_t thread_id, pid_t tid)
{
    size_t i = 0;
    while (i < stacks->thread_count &&
           !(stacks->threads[i].has_python && (tid ? stacks->threads[i].os_thread_id == tid
                                                   : stacks->threads[i].thread_id == thread_id)))
        i++;
    return i;
}

struct prb_exceptions **prb_exceptions_all(struct prb_target *target,
                                           const struct prb_stacks *stacks, struct prb_error *err)
{
    struct prb_exceptions **all = calloc(stacks->thread_count + 1, sizeof *all);
    if (!all)
        return PRB_NULL(prb_nomem(err));
    for (size_t i = 0; i < target->runtime_count; i++) {
        PRB_AUTO(threads) struct threads threads = {0};
        if (!take_threads(target, &target->runtimes[i], &threads))
            continue;
        for (size_t k = 0; k < threads.raw->thread_count; k++) {
            struct prb_exceptions *found =
                take_one(target, &target->runtimes[i], &threads, k, NULL);
            size_t at = found && found->count ? index_of(stacks, threads.raw->threads[k].thread_id,
                                                         tid_of(&threads, k))
                                              : stacks->thread_count;
            if (at < stacks->thread_count && !all[at])
                all[at] = found;
            else
                prb_exceptions_free(found);
        }
    }
    return all;
}
