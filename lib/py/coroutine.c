/*
 * Chains of awaits: the frame of a suspended coroutine, and the object on top of its stack, which
 * it awaits.  Relies on the traits generator and stack_top and on the numbers of traits.def.
 */
#include "py/coroutine.h"

#include <string.h>

#include "py/object/reader.h"
#include "py/walk.h"

void prb_awaits_deinit(struct prb_awaits *awaits)
{
    free(awaits->frames);
    *awaits = (struct prb_awaits){0};
}

static bool is_generator(enum prb_object_kind kind)
{
    return kind == PRB_OBJ_COROUTINE || kind == PRB_OBJ_GENERATOR ||
           kind == PRB_OBJ_ASYNC_GENERATOR;
}

/* The address of its frame; 0: it has none any more, or that cannot be read. */
static prb_addr frame_of(struct prb_objects *objects, prb_addr generator)
{
    const struct prb_layout *layout = objects->layout;
    uint64_t frame = 0;
    if (!PRB_HAS(layout, gen, frame))
        return 0;
    prb_addr at = generator + (prb_addr)PRB_OFF(layout, gen, frame);
    if (PRB_IS(layout, generator, EMBEDDED))
        return at;
    return prb_objects_words(objects, at, &frame, 1) ? frame : 0;
}

prb_addr prb_coroutine_code(struct prb_objects *objects, prb_addr coroutine)
{
    uint64_t code = 0;
    if (!is_generator(prb_object_kind(objects, coroutine, NULL)))
        return 0;
    if (PRB_GET(objects, coroutine, gen, code, &code) && code)
        return code;
    prb_addr frame = frame_of(objects, coroutine);
    if (!frame || !PRB_GET(objects, frame, frame, code, &code))
        return 0;
    return PRB_IS(objects->layout, reference, TAGGED)
               ? code & ~(uint64_t)PRB_NUM(objects->layout, reference_mask)
               : code;
}

/* The byte that says how it stands; false where the version has none. */
static bool state_byte(struct prb_objects *objects, prb_addr generator, prb_addr frame, int *out)
{
    uint64_t byte;
    if (PRB_NUM(objects->layout, frame_created) == PRB_NONE)
        return false;
    bool embedded = PRB_IS(objects->layout, generator, EMBEDDED);
    if (embedded ? !PRB_GET(objects, generator, gen, state, &byte)
                 : !PRB_GET(objects, frame, frame, state, &byte))
        return false;
    *out = (int8_t)(uint8_t)byte;
    return true;
}

static enum prb_coroutine_state state_of(struct prb_objects *objects, prb_addr generator,
                                         const struct prb_raw_frame *frame, int *byte_out)
{
    const struct prb_layout *layout = objects->layout;
    uint64_t running = 0;
    if (state_byte(objects, generator, frame->frame, byte_out)) {
        if (*byte_out == PRB_NUM(layout, frame_created))
            return PRB_COROUTINE_CREATED;
        if (*byte_out >= PRB_NUM(layout, frame_completed))
            return PRB_COROUTINE_DONE;
        return *byte_out <= PRB_NUM(layout, frame_suspended) ? PRB_COROUTINE_SUSPENDED
                                                             : PRB_COROUTINE_EXECUTING;
    }
    if (PRB_GET(objects, generator, gen, state, &running) && running)
        return PRB_COROUTINE_EXECUTING;
    return frame->instruction < 0 ? PRB_COROUTINE_CREATED : PRB_COROUTINE_SUSPENDED;
}

/* Two bytes of code: the instruction at this place, and its argument. */
static bool instruction_at(struct prb_objects *objects, prb_addr code, int64_t offset,
                           unsigned *opcode, unsigned *argument)
{
    const struct prb_layout *layout = objects->layout;
    uint64_t start = code + (prb_addr)PRB_OFF(layout, code, bytecode);
    if (!PRB_IS(layout, generator, EMBEDDED)) { /* a bytes object, as long as frames are objects */
        if (!prb_objects_words(objects, start, &start, 1))
            return false;
        start += (prb_addr)PRB_OFF(layout, bytes, data);
    }
    const uint8_t *bytes = prb_objects_get(objects, start + (prb_addr)offset, 2);
    if (!bytes)
        return false;
    *opcode = bytes[0];
    *argument = bytes[1];
    return true;
}

/* Whether a suspended one stands in an await (or yield from), and not at a plain yield. */
static bool in_await(struct prb_objects *objects, const struct prb_raw_frame *frame, int byte)
{
    const struct prb_layout *layout = objects->layout;
    unsigned opcode, argument;
    if (PRB_NUM(layout, frame_awaiting) != PRB_NONE)
        return byte >= PRB_NUM(layout, frame_awaiting) && byte <= PRB_NUM(layout, frame_suspended);
    enum { UNIT = 2 };
    if (!instruction_at(objects, frame->code, (int64_t)frame->instruction + UNIT, &opcode,
                        &argument))
        return false;
    if (PRB_NUM(layout, yield_from_opcode) != PRB_NONE)
        return opcode == (unsigned)PRB_NUM(layout, yield_from_opcode);
    return (opcode == (unsigned)PRB_NUM(layout, resume_opcode) ||
            opcode == (unsigned)PRB_NUM(layout, resume_opcode_other)) &&
           argument >= (unsigned)PRB_NUM(layout, resume_awaiting);
}

#define STACK_WORDS_MAX 65536 /* values on the stack of one frame */

/* The address behind the last value on its stack; 0: unknown. */
static prb_addr stack_end(struct prb_objects *objects, prb_addr frame)
{
    const struct prb_layout *layout = objects->layout;
    prb_addr at = frame + (prb_addr)PRB_OFF(layout, frame, stacktop);
    uint64_t base = 0, top = 0;
    if (PRB_IS(layout, stack_top, ADDRESS))
        return prb_objects_words(objects, at, &top, 1) ? top : 0;
    const uint8_t *bytes = prb_objects_get(objects, at, 4);
    if (!bytes)
        return 0;
    memcpy(&top, bytes, 4);
    if (PRB_IS(layout, stack_top, VALUES)) {
        if (!PRB_GET(objects, frame, frame, valuestack, &base))
            return 0;
    } else {
        base = frame + (prb_addr)PRB_OFF(layout, frame, localsplus);
    }
    return top && top < STACK_WORDS_MAX ? base + 8 * top : 0;
}

static prb_addr awaited(struct prb_objects *objects, const struct prb_raw_frame *frame)
{
    const struct prb_layout *layout = objects->layout;
    prb_addr end = stack_end(objects, frame->frame);
    uint64_t word = 0;
    if (!end ||
        !prb_objects_words(objects, end - 8 * (prb_addr)PRB_NUM(layout, await_depth), &word, 1))
        return 0;
    return PRB_IS(layout, reference, TAGGED) ? word & ~(uint64_t)PRB_NUM(layout, reference_mask)
                                             : word;
}

/* Objects whose first member is what they stand for (Objects/genobject.c, iterobject.c,
 * Modules/_asynciomodule.c: PyCoroWrapper, PyAsyncGenASend, PyAsyncGenAThrow, anextawaitableobject,
 * futureiterobject). */
static bool is_wrapper(const char *type)
{
    static const char *const names[] = {"coroutine_wrapper",      "async_generator_asend",
                                        "async_generator_athrow", "anext_awaitable",
                                        "_asyncio.FutureIter",    "FutureIter"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(type, names[i]))
            return true;
    return false;
}

/* What an object that is not a coroutine stands for, or 0. */
static prb_addr unwrap(struct prb_objects *objects, prb_addr object)
{
    struct prb_object_type *type = prb_type_of(objects, object, NULL);
    uint64_t inside = 0;
    if (!type || !is_wrapper(type->name) ||
        !prb_objects_words(objects, object + (prb_addr)PRB_OFF(objects->layout, object, size),
                           &inside, 1))
        return 0;
    return inside;
}

static prb_addr breaks(struct prb_awaits *out, prb_addr at, const char *why)
{
    out->broken = true;
    prb_fail_addr(&out->error, at, "%s at %#llx", why, (unsigned long long)at);
    return 0;
}

/* Take one coroutine; the next one, or 0: the chain ends. */
static prb_addr take(struct prb_objects *objects, prb_addr generator, struct prb_awaits *out)
{
    struct prb_raw_frame frame;
    int byte = 0;
    prb_addr at = frame_of(objects, generator);
    if (!at) {
        if (!out->count)
            out->state = PRB_COROUTINE_DONE;
        return 0;
    }
    if (!prb_walk_one(objects->py, objects->view, at, &frame, NULL))
        return breaks(out, at, "unreadable frame of a coroutine");
    enum prb_coroutine_state state = state_of(objects, generator, &frame, &byte);
    if (!out->count)
        out->state = state;
    if (state == PRB_COROUTINE_DONE)
        return 0;
    if (!PRB_GROW(out->frames, out->count, out->cap))
        return breaks(out, at, "out of memory");
    out->frames[out->count++] = frame;
    if (state != PRB_COROUTINE_SUSPENDED || !in_await(objects, &frame, byte))
        return 0;
    return awaited(objects, &frame);
}

void prb_awaits_follow(struct prb_objects *objects, prb_addr coroutine, size_t *left,
                       struct prb_awaits *out)
{
    prb_addr at = coroutine, slow = coroutine; /* Brent's: the marker moves at powers of two */
    out->count = 0;
    out->broken = false;
    out->end = 0;
    out->state = PRB_COROUTINE_DONE;
    for (size_t steps = 0; at; steps++) {
        struct prb_error err = {0};
        enum prb_object_kind kind = prb_object_kind(objects, at, &err);
        prb_addr next = 0;
        if (steps >= PRB_AWAITS_MAX || !*left) {
            breaks(out, at,
                   *left ? "more awaits than the limit" : "more awaits in all than the limit");
            return;
        }
        --*left;
        if (is_generator(kind)) {
            next = take(objects, at, out);
        } else if (!(next = unwrap(objects, at))) {
            out->end = kind == PRB_OBJ_NONE ? 0 : at;
            return;
        }
        if (next && (next == at || next == slow)) {
            breaks(out, at, "awaits that loop");
            return;
        }
        if ((steps & (steps + 1)) == 0)
            slow = next;
        at = next;
    }
}

bool prb_awaits_equal(const struct prb_awaits *a, const struct prb_awaits *b)
{
    if (a->count != b->count || a->state != b->state || a->end != b->end || a->broken || b->broken)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->frames[i].frame != b->frames[i].frame || a->frames[i].code != b->frames[i].code ||
            a->frames[i].instruction != b->frames[i].instruction)
            return false;
    return true;
}
