/*
 * Who waits for a future.  From 3.14 on CPython says so; before, the future's callbacks do: each
 * that asyncio itself leaves there names, in its own way, the task or the future that waits.
 * Sources: Modules/_asynciomodule.c (task_wakeup, awaited_by), Lib/asyncio/tasks.py (gather,
 * shield, wait, wait_for), taskgroups.py, futures.py.
 */
#include <string.h>

#include "py/asyncio.h"
#include "py/object/reader.h"

struct asking {
    struct prb_objects *objects;
    prb_async_task_fn *each;
    void *context;
    size_t count;
    bool ended;
};

static bool tell(struct asking *asking, prb_addr waiter)
{
    if (!waiter || prb_future_kind(asking->objects, waiter) == PRB_NO_FUTURE)
        return true;
    asking->ended = ++asking->count > PRB_WAITERS_MAX || !asking->each(asking->context, waiter);
    return !asking->ended;
}

static bool tell_item(void *context, prb_addr key, prb_addr item)
{
    (void)key;
    return tell(context, item);
}

/* ---- by callbacks ---- */

static bool is_named(struct prb_objects *objects, prb_addr addr, const char *const *names,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (prb_str_equals(objects, addr, names[i]))
            return true;
    return false;
}

/* The wake-up of a task of the C module. */
static void ask_builtin(struct asking *asking, prb_addr builtin)
{
    uint64_t def = 0, name = 0, self = 0;
    if (!PRB_GET(asking->objects, builtin, builtin, def, &def) ||
        !PRB_GET(asking->objects, def, method_def, name, &name) ||
        !PRB_GET(asking->objects, builtin, builtin, self, &self))
        return;
    const char *text = prb_objects_cstring(asking->objects, name, 32);
    if (text && !strcmp(text, "task_wakeup"))
        tell(asking, self);
}

/* That of a task written in Python; a task group's, which the group's own task waits for. */
static void ask_method(struct asking *asking, prb_addr method)
{
    static const char *const wake_ups[] = {"__wakeup", "_wakeup"};
    uint64_t func = 0, self = 0, name = 0;
    prb_addr parent = 0;
    if (!PRB_GET(asking->objects, method, method, func, &func) ||
        !PRB_GET(asking->objects, method, method, self, &self) ||
        prb_object_kind(asking->objects, func, NULL) != PRB_OBJ_FUNCTION ||
        !PRB_GET(asking->objects, func, function, name, &name))
        return;
    if (is_named(asking->objects, name, wake_ups, 2))
        tell(asking, self);
    else if (prb_str_equals(asking->objects, name, "_on_task_done") &&
             prb_attribute_get(asking->objects, self, "_parent_task", &parent, NULL))
        tell(asking, parent);
}

/* The variables of asyncio's callbacks that hold who waits: gather, shield and wait_for, wait,
 * chained futures. */
static const char *const waiting_variables[] = {"outer", "waiter", "destination"};

struct closure {
    struct asking *asking;
    const struct prb_code_object *code;
    size_t at; /* in code->variables */
};

static bool ask_cell(void *context, prb_addr key, prb_addr cell)
{
    (void)key;
    struct closure *closure = context;
    const struct prb_code_object *code = closure->code;
    uint64_t inside = 0;
    while (closure->at < code->variable_count &&
           !(code->variable_kinds[closure->at] & PRB_VARIABLE_FREE))
        closure->at++;
    if (closure->at >= code->variable_count)
        return false;
    const char *name = code->variables[closure->at++];
    for (size_t i = 0; i < sizeof waiting_variables / sizeof *waiting_variables; i++)
        if (!strcmp(name, waiting_variables[i]) &&
            PRB_GET(closure->asking->objects, cell, cell, ref, &inside))
            return tell(closure->asking, inside);
    return true;
}

static void ask_function(struct asking *asking, prb_addr function)
{
    uint64_t code = 0, cells = 0;
    if (!PRB_GET(asking->objects, function, function, code, &code) ||
        !PRB_GET(asking->objects, function, function, closure, &cells) || !cells)
        return;
    struct closure closure = {asking, prb_code_get(asking->objects->py, code, true, NULL), 0};
    if (closure.code && closure.code->variables)
        (void)prb_sequence_each(asking->objects, cells, ask_cell, &closure, NULL);
}

/* functools.partial(_release_waiter, waiter), which wait_for leaves up to 3.11. */
static void ask_partial(struct asking *asking, prb_addr partial)
{
    uint64_t words[2]; /* partialobject: fn, args */
    prb_addr at = partial + (prb_addr)PRB_OFF(asking->objects->layout, object, size);
    uint64_t name = 0;
    if (prb_objects_words(asking->objects, at, words, 2) &&
        prb_object_kind(asking->objects, words[0], NULL) == PRB_OBJ_FUNCTION &&
        PRB_GET(asking->objects, words[0], function, name, &name) &&
        prb_str_equals(asking->objects, name, "_release_waiter"))
        (void)prb_sequence_each(asking->objects, words[1], tell_item, asking, NULL);
}

static void ask_callback(struct asking *asking, prb_addr callback)
{
    struct prb_object_type *type = prb_type_of(asking->objects, callback, NULL);
    uint64_t inside = 0;
    if (!type)
        return;
    if (type->kind == PRB_OBJ_BUILTIN)
        ask_builtin(asking, callback);
    else if (type->kind == PRB_OBJ_METHOD)
        ask_method(asking, callback);
    else if (type->kind == PRB_OBJ_FUNCTION)
        ask_function(asking, callback);
    else if (!strcmp(type->name, "functools.partial"))
        ask_partial(asking, callback);
    else if (!strcmp(prb_type_short_name(type), "TaskWakeupMethWrapper") && /* 3.7, 3.6 */
             prb_objects_words(asking->objects,
                               callback + (prb_addr)PRB_OFF(asking->objects->layout, object, size),
                               &inside, 1))
        tell(asking, inside);
}

/* Of the list of callbacks: (callback, context), up to 3.6 the callback itself. */
static bool ask_pair(void *context, prb_addr key, prb_addr pair)
{
    (void)key;
    struct asking *asking = context;
    uint64_t callback = pair;
    if (prb_object_kind(asking->objects, pair, NULL) == PRB_OBJ_TUPLE &&
        !prb_objects_words(asking->objects,
                           pair + (prb_addr)PRB_OFF(asking->objects->layout, tuple, items),
                           &callback, 1))
        return true;
    ask_callback(asking, callback);
    return !asking->ended;
}

static void ask_callbacks(struct asking *asking, prb_addr future, enum prb_future_kind kind)
{
    bool python = kind == PRB_FUTURE_PYTHON || kind == PRB_TASK_PYTHON;
    uint64_t first = 0, list = 0;
    if (python) {
        (void)prb_attribute_get(asking->objects, future, "_callbacks", &list, NULL);
    } else {
        (void)PRB_GET(asking->objects, future, asyncio_task, callback0, &first);
        (void)PRB_GET(asking->objects, future, asyncio_task, callbacks, &list);
    }
    if (first)
        ask_callback(asking, first);
    if (list && !asking->ended && prb_object_kind(asking->objects, list, NULL) == PRB_OBJ_LIST)
        (void)prb_sequence_each(asking->objects, list, ask_pair, asking, NULL);
}

/* ---- by the links ---- */

static void ask_links(struct asking *asking, prb_addr future, enum prb_future_kind kind)
{
    uint64_t waiters = 0, is_set = 0;
    if (kind == PRB_FUTURE_PYTHON || kind == PRB_TASK_PYTHON) {
        is_set = prb_attribute_get(asking->objects, future, "_Future__asyncio_awaited_by", &waiters,
                                   NULL) &&
                 waiters && prb_object_kind(asking->objects, waiters, NULL) == PRB_OBJ_SET;
        waiters = is_set ? waiters : 0;
    } else if (!PRB_GET(asking->objects, future, asyncio_task, awaited_by, &waiters) ||
               !PRB_GET(asking->objects, future, asyncio_task, awaited_by_is_set, &is_set)) {
        return;
    }
    if (waiters && is_set)
        (void)prb_sequence_each(asking->objects, waiters, tell_item, asking, NULL);
    else if (waiters)
        tell(asking, waiters);
}

void prb_async_waiters_each(struct prb_objects *objects, prb_addr future, prb_async_task_fn *each,
                            void *context)
{
    struct asking asking = {.objects = objects, .each = each, .context = context};
    enum prb_future_kind kind = prb_future_kind(objects, future);
    if (kind == PRB_NO_FUTURE)
        return;
    bool python = kind == PRB_FUTURE_PYTHON || kind == PRB_TASK_PYTHON;
    if (PRB_HAS(objects->layout, asyncio_task, awaited_by))
        ask_links(&asking, future, kind);
    /* The C module links no future that is not of its own. */
    if (!PRB_HAS(objects->layout, asyncio_task, awaited_by) || (python && !asking.count))
        ask_callbacks(&asking, future, kind);
}
