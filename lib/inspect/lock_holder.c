/*
 * Who holds the lock that a thread waits for.  A lock of Python's does not know it, an RLock does; but
 * `with` keeps the lock, or its __exit__, on the stack of the frame until its block ends, and the
 * exception table says how many values on that stack the block needs (3.11+).
 */
#include <stdio.h>
#include <string.h>

#include "inspect/holder.h"
#include "inspect/target.h"
#include "py/object/reader.h"

#define TABLE_MAX 65536 /* bytes of an exception table */
#define SLOTS_MAX 64    /* values on the stack of a frame that are looked at */
#define UNIT 2          /* bytes of an instruction's code unit */

struct lock {
    prb_addr object; /* 0: none */
    bool knows;      /* its owner: an RLock */
};

/* ---- how many values of its stack a frame needs where it is ---- */

/* Six bits a byte, the highest first (Objects/exception_handling_notes.txt). */
static bool number(const uint8_t **at, const uint8_t *end, unsigned *out)
{
    uint8_t byte;
    *out = 0;
    do {
        if (*at == end)
            return false;
        byte = *(*at)++;
        *out = *out << 6 | (byte & 63);
    } while (byte & 64);
    return true;
}

static unsigned depth_in(const uint8_t *table, size_t len, unsigned unit)
{
    const uint8_t *at = table, *end = table + len;
    unsigned start, length, handler, depth;
    while (number(&at, end, &start) && number(&at, end, &length) && number(&at, end, &handler) &&
           number(&at, end, &depth))
        if (unit >= start && unit - start < length)
            return depth >> 1;
    return 0;
}

static unsigned depth_of(struct prb_objects *objects, const struct prb_frame *frame)
{
    uint64_t table, len;
    if (frame->instruction < 0 || !PRB_GET(objects, frame->code, code, exceptiontable, &table) ||
        !PRB_GET(objects, table, varobject, size, &len) || len > TABLE_MAX)
        return 0;
    const uint8_t *bytes = prb_objects_get(
        objects, table + (prb_addr)PRB_OFF(objects->layout, bytes, data), (size_t)len);
    return bytes ? depth_in(bytes, (size_t)len, (unsigned)frame->instruction / UNIT) : 0;
}

/* ---- values on the stack of a frame ---- */

static struct lock lock_of(struct prb_objects *objects, uint64_t word)
{
    bool tagged = PRB_IS(objects->layout, reference, TAGGED);
    prb_addr object = tagged ? word & ~(uint64_t)PRB_NUM(objects->layout, reference_mask) : word;
    const struct prb_object_type *type = object ? prb_type_of(objects, object, NULL) : NULL;
    if (type && type->kind == PRB_OBJ_BUILTIN)
        type = PRB_GET(objects, object, builtin, self, &object) && object
                   ? prb_type_of(objects, object, NULL)
                   : NULL;
    if (!type ||
        (strcmp(type->name, "_thread.lock") != 0 && strcmp(type->name, "_thread.RLock") != 0))
        return (struct lock){0};
    return (struct lock){object, strcmp(type->name, "_thread.RLock") == 0};
}

/* The first lock among values first to last, but not that one; without one: that itself. */
static struct lock find_in(struct prb_objects *objects, const struct prb_frame *frame,
                           unsigned first, unsigned last, prb_addr wanted)
{
    uint64_t variables, word;
    if (!PRB_GET(objects, frame->code, code, nlocalsplus, &variables))
        return (struct lock){0};
    prb_addr at =
        frame->addr + (prb_addr)PRB_OFF(objects->layout, frame, localsplus) + 8 * variables;
    for (unsigned i = first; i < last && i < SLOTS_MAX; i++) {
        if (!prb_objects_words(objects, at + 8 * i, &word, 1))
            break;
        struct lock lock = lock_of(objects, word);
        if (lock.object && (!wanted || lock.object == wanted))
            return lock;
    }
    return (struct lock){0};
}

static bool holds(struct prb_objects *objects, const struct prb_thread *thread, prb_addr lock)
{
    for (size_t i = 0; i < thread->frame_count; i++)
        if (thread->frames[i].kind == PRB_FRAME_PYTHON &&
            find_in(objects, &thread->frames[i], 0, depth_of(objects, &thread->frames[i]), lock)
                .object)
            return true;
    return false;
}

/* What the innermost frame waits for lies behind the values that its blocks need. */
static struct lock waited_for(struct prb_objects *objects, const struct prb_thread *thread)
{
    size_t i = 0;
    while (i < thread->frame_count && thread->frames[i].kind != PRB_FRAME_PYTHON)
        i++;
    return i < thread->frame_count ? find_in(objects, &thread->frames[i],
                                             depth_of(objects, &thread->frames[i]), SLOTS_MAX, 0)
                                   : (struct lock){0};
}

void prb_lock_holder_of(struct prb_target *target, const struct prb_stacks *stacks, size_t waiter,
                        char *text, size_t size)
{
    uint64_t owner = 0;
    snprintf(text, size, "%s", "");
    if (!target->runtime_count || !target->runtimes[0].objects)
        return;
    struct prb_objects *objects = target->runtimes[0].objects;
    if (!PRB_HAS(objects->layout, code, exceptiontable))
        return;
    prb_objects_clear(objects);
    struct lock lock = waited_for(objects, &stacks->threads[waiter]);
    if (!lock.object || (lock.knows && !PRB_GET(objects, lock.object, rlock, owner, &owner)))
        return;
    for (size_t i = 0; i < stacks->thread_count; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        if (lock.knows ? !owner || thread->thread_id != owner
                       : !holds(objects, thread, lock.object))
            continue;
        if (i == waiter)
            snprintf(text, size, "this thread itself");
        else
            prb_holder_describe(thread, text, size);
        return;
    }
}
