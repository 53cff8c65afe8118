/*
 * One task of asyncio: of the C module by its layout, of asyncio.tasks by its attributes, and
 * classes derived from either.  Sources: Modules/_asynciomodule.c, Lib/asyncio/futures.py and
 * tasks.py.
 */
#include "py/asyncio.h"

#include <string.h>

#include "py/object/reader.h"

void prb_async_raw_deinit(struct prb_async_raw *raw)
{
    prb_awaits_deinit(&raw->awaits);
    *raw = (struct prb_async_raw){0};
}

/* ---- kinds ---- */

static enum prb_future_kind kind_of_class(struct prb_objects *objects, struct prb_object_type *type)
{
    static const struct {
        const char *name, *module;
        enum prb_future_kind kind;
    } classes[] = {
        {"_asyncio.Task", NULL, PRB_TASK_C},
        {"_asyncio.Future", NULL, PRB_FUTURE_C},
        {"Task", "asyncio.tasks", PRB_TASK_PYTHON},
        {"Future", "asyncio.futures", PRB_FUTURE_PYTHON},
    };
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (!strcmp(type->name, classes[i].name) &&
            (!classes[i].module || !strcmp(prb_type_module(objects, type), classes[i].module)))
            return classes[i].kind;
    return PRB_NO_FUTURE;
}

/* The class that makes a type a future; NULL: it is none. */
static struct prb_object_type *future_class(struct prb_objects *objects,
                                            struct prb_object_type *type,
                                            enum prb_future_kind *kind_out)
{
    for (int depth = 0; type && depth < PRB_BASES_MAX; depth++) {
        if ((*kind_out = kind_of_class(objects, type)) != PRB_NO_FUTURE)
            return type;
        type = type->base ? prb_type_at(objects, type->base, NULL) : NULL;
    }
    return NULL;
}

enum prb_future_kind prb_future_kind(struct prb_objects *objects, prb_addr object)
{
    enum prb_future_kind kind = PRB_NO_FUTURE;
    struct prb_object_type *type = prb_type_of(objects, object, NULL);
    return type && future_class(objects, type, &kind) ? kind : PRB_NO_FUTURE;
}

/* ---- fields ---- */

/* An attribute that a class in Python has of its own; 0: it has none, or it is None. */
static prb_addr attribute(struct prb_objects *objects, prb_addr object, const char *name)
{
    prb_addr value = 0;
    if (!prb_attribute_get(objects, object, name, &value, NULL) || !value ||
        prb_object_kind(objects, value, NULL) == PRB_OBJ_NONE)
        return 0;
    return value;
}

static bool read_python(struct prb_objects *objects, struct prb_async_raw *out)
{
    PRB_AUTO(prb_buf) struct prb_buf state = {0};
    prb_addr text = attribute(objects, out->addr, "_state");
    prb_addr cancels = attribute(objects, out->addr, "_num_cancels_requested");
    prb_addr must_cancel = attribute(objects, out->addr, "_must_cancel");
    /* It stands in the class until it is another one. */
    out->pending = !text || !prb_object_str(objects, text, 16, &state, NULL) || !state.data ||
                   !strcmp(state.data, "PENDING");
    out->loop = attribute(objects, out->addr, "_loop");
    out->coroutine = attribute(objects, out->addr, "_coro");
    out->name = attribute(objects, out->addr, "_name");
    out->waits_for = attribute(objects, out->addr, "_fut_waiter");
    if (cancels)
        (void)prb_object_int(objects, cancels, &out->cancels, NULL);
    else if (must_cancel)
        (void)prb_object_int(objects, must_cancel, &out->cancels, NULL);
    return out->coroutine != 0;
}

static bool read_c(struct prb_objects *objects, struct prb_async_raw *out, struct prb_error *err)
{
    const struct prb_layout *layout = objects->layout;
    uint64_t state = 0, count = 0, name = 0;
    enum prb_future_kind kind;
    struct prb_object_type *type = prb_type_of(objects, out->addr, err);
    type = type ? future_class(objects, type, &kind) : NULL;
    if (!type)
        return prb_fail(err, PRB_CORRUPT, "no task at %#llx", (unsigned long long)out->addr);
    if (!PRB_HAS(layout, asyncio_task, size) ||
        type->basicsize != PRB_OFF(layout, asyncio_task, size))
        return prb_fail(err, PRB_UNSUPPORTED,
                        "the tasks of this CPython have %lld bytes, unlike those of %s",
                        (long long)type->basicsize, layout->name);
    if (!PRB_GET(objects, out->addr, asyncio_task, state, &state) ||
        !PRB_GET(objects, out->addr, asyncio_task, loop, &out->loop) ||
        !PRB_GET(objects, out->addr, asyncio_task, coro, &out->coroutine) ||
        !PRB_GET(objects, out->addr, asyncio_task, fut_waiter, &out->waits_for))
        return prb_fail_addr(err, out->addr, "a task");
    (void)PRB_GET(objects, out->addr, asyncio_task, name, &name);
    if (PRB_GET(objects, out->addr, asyncio_task, cancels, &count) ||
        PRB_GET(objects, out->addr, asyncio_task, must_cancel, &count))
        out->cancels = (int32_t)(uint32_t)count;
    out->name = name;
    out->pending = state == 0;
    return true;
}

bool prb_async_task_read(struct prb_objects *objects, prb_addr task, size_t *left,
                         struct prb_async_raw *out, struct prb_error *err)
{
    struct prb_awaits awaits = out->awaits; /* its memory serves again */
    *out = (struct prb_async_raw){
        .addr = task, .kind = prb_future_kind(objects, task), .awaits = awaits};
    if (!prb_is_task(out->kind))
        return prb_fail(err, PRB_CORRUPT, "no task at %#llx", (unsigned long long)task);
    if (out->kind == PRB_TASK_C ? !read_c(objects, out, err) : !read_python(objects, out))
        return prb_fail(err, PRB_CORRUPT, "no task at %#llx", (unsigned long long)task);
    prb_awaits_follow(objects, out->coroutine, left, &out->awaits);
    return true;
}

bool prb_async_task_equal(const struct prb_async_raw *a, const struct prb_async_raw *b)
{
    return a->addr == b->addr && a->coroutine == b->coroutine && a->pending == b->pending &&
           a->waits_for == b->waits_for && prb_awaits_equal(&a->awaits, &b->awaits);
}

#define NAME_CHARACTERS 200

bool prb_async_task_name(struct prb_objects *objects, const struct prb_async_raw *task,
                         struct prb_buf *out)
{
    int64_t number;
    if (!task->name)
        return false;
    /* A number waits to be made into the text that asyncio would give it (3.12 and later). */
    if (prb_object_kind(objects, task->name, NULL) == PRB_OBJ_INT &&
        prb_object_int(objects, task->name, &number, NULL)) {
        prb_buf_addf(out, "Task-%lld", (long long)number);
        return true;
    }
    return prb_object_str(objects, task->name, NAME_CHARACTERS, out, NULL);
}
