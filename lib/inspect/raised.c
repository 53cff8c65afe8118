/*
 * A thread that ends by an exception runs the hook that writes the crash dump, and has left the
 * frames where the exception was raised.  The traceback has those frames with their locals: they
 * replace the hook's, above the frames that still run.
 */
#include <string.h>

#include "inspect/reading.h"
#include "inspect/traceback.h"
#include "py/locals.h"

/* inject/probe/crash/crash.py, as the probe names it. */
#define HOOK_FILE "<probing crash>"
#define HOOK_ERROR "error"

static bool find_error(void *context, const struct prb_variable *variable)
{
    prb_addr *error = context;
    if (strcmp(variable->name, HOOK_ERROR) != 0)
        return true;
    *error = variable->object;
    return false;
}

/* The exception that the hook reports; 0: the thread is not in the hook. */
static prb_addr reported_exception(struct prb_reading *reading, const struct prb_raw_thread *raw)
{
    struct prb_objects *objects = reading->runtime->objects;
    prb_addr error = 0;
    const struct prb_code_object *code =
        raw->frame_count && raw->frames[0].code
            ? prb_code_get(reading->runtime->py, raw->frames[0].code, false, NULL)
            : NULL;
    if (!code || !code->filename || strcmp(code->filename, HOOK_FILE) != 0 ||
        !(code = prb_code_get(reading->runtime->py, raw->frames[0].code, true, NULL)))
        return 0;
    (void)prb_locals_each(objects, &raw->frames[0], code, find_error, &error, NULL);
    return error && prb_object_kind(objects, error, NULL) == PRB_OBJ_EXCEPTION ? error : 0;
}

struct entries {
    struct prb_raw_frame *items;
    size_t count, cap;
};
static void entries_deinit(struct entries *entries) { free(entries->items); }
PRB_DEFINE_AUTO(entries, struct entries, entries_deinit)

static bool add_entry(void *context, const struct prb_traceback_entry *entry)
{
    struct entries *entries = context;
    if (!PRB_GROW(entries->items, entries->count, entries->cap))
        return false;
    entries->items[entries->count++] = entry->raw;
    return true;
}

/* Index of the first row that remains: below the hook, and below the frame that the exception
 * reached last, which is the first of the traceback. */
static size_t first_outer(const struct prb_thread *thread, prb_addr outermost)
{
    size_t first = 0;
    for (size_t i = 0; i < thread->frame_count; i++) {
        const struct prb_frame *row = &thread->frames[i];
        if (row->kind != PRB_FRAME_PYTHON)
            continue;
        if (row->addr == outermost || (row->filename && strcmp(row->filename, HOOK_FILE) == 0))
            first = i + 1;
    }
    return first;
}

bool prb_reading_raised(struct prb_reading *reading, const struct prb_raw_thread *raw,
                        struct prb_thread *thread, struct prb_error *err)
{
    PRB_AUTO(entries) struct entries left = {0};
    size_t most =
        reading->runtime->py->frames_max ? reading->runtime->py->frames_max : PRB_TRACEBACK_MAX;
    prb_addr error = reported_exception(reading, raw);
    if (error)
        prb_traceback_each(reading->runtime->objects, error, add_entry, &left);
    if (!left.count)
        return true;
    size_t outer = first_outer(thread, left.items[0].frame), count = 0;
    size_t rest = thread->frame_count - outer;
    struct prb_frame *rows = prb_reading_rows(reading, left.count + rest, err);
    if (!rows)
        return false;
    for (size_t i = left.count; i-- > 0 && count < most;) /* a traceback ends with the innermost */
        rows[count++] = prb_reading_python_row(reading, &left.items[i]);
    for (size_t i = 0; i < rest; i++)
        rows[count++] = thread->frames[outer + i];
    thread->frames = rows;
    thread->frame_count = count;
    thread->raised = true;
    return true;
}
