/*
 * A synthetic interpreter: one runtime, one interpreter, two threads with three frames each, their
 * code objects; laid out as any version has it.
 */
#ifndef PRB_TESTS_STACK_IMAGE_H
#define PRB_TESTS_STACK_IMAGE_H

#include "object_image.h"

#include "py/sampler.h"

enum { STACK_THREADS = 2, STACK_FRAMES = 3, STACK_INSTRUCTION = 10, STACK_FIRST_LINE = 100 };
/* What every frame's line table says of STACK_INSTRUCTION. */
enum { STACK_LINE = STACK_FIRST_LINE + 2, STACK_COLUMN = 4, STACK_END_COLUMN = 12 };

static const char *const stack_names[STACK_FRAMES] = {"inner", "middle", "outer"};

struct stack_image {
    struct fixture f;
    prb_addr runtime, interp, interpreters, gil;
    prb_addr threads[STACK_THREADS]; /* oldest first; the first holds the GIL */
    prb_addr frames[STACK_THREADS][STACK_FRAMES], codes[STACK_FRAMES];
    prb_addr code_type, bytes_type;
};

/* Room for structs larger than a page. */
static inline prb_addr stack_room(struct image *image)
{
    prb_addr addr = image_alloc(image);
    for (int more = 0; more < 2; more++)
        image_alloc(image);
    return addr;
}

static inline prb_addr stack_bytes(struct stack_image *s, const uint8_t *data, size_t len)
{
    prb_addr object = image_object(&s->f.image, s->bytes_type);
    PUT(&s->f.image, object, bytes, size, len);
    image_write(&s->f.image, object + OFF(&s->f.image, bytes, data), data, len);
    return object;
}

/* Two ranges of ten bytes: the first line, then two lines on. */
static inline prb_addr stack_line_table(struct stack_image *s)
{
    static const uint8_t lnotab[] = {10, 2}, lines[] = {10, 0, 10, 2},
                         locations[] = {0x80 | 10 << 3 | 4, 1, 5, 0x80 | 12 << 3 | 4, STACK_COLUMN,
                                        STACK_END_COLUMN};
    switch ((enum prb_line_table)s->f.image.py.layout.trait[PRB_TRAIT_line_table]) {
    case PRB_line_table_LINES:
        return stack_bytes(s, lines, sizeof lines);
    case PRB_line_table_LOCATIONS:
        return stack_bytes(s, locations, sizeof locations);
    case PRB_line_table_LNOTAB:
    case PRB_line_table_LNOTAB_UNSIGNED:
    default:
        return stack_bytes(s, lnotab, sizeof lnotab);
    }
}

static inline prb_addr stack_code(struct stack_image *s, const char *name)
{
    struct image *image = &s->f.image;
    prb_addr code = image_object(image, s->code_type);
    PUT(image, code, varobject, size, 10);
    PUT(image, code, code, firstlineno, STACK_FIRST_LINE);
    PUT(image, code, code, name, ascii(&s->f, name));
    PUT(image, code, code, qualname, ascii(&s->f, "Class.method"));
    PUT(image, code, code, filename, ascii(&s->f, "/some/file.py"));
    PUT(image, code, code, linetable, stack_line_table(s));
    return code;
}

static inline void stack_instruction(struct image *image, prb_addr frame, prb_addr code)
{
    prb_addr at = frame + OFF(image, frame, instr);
    uint64_t pointer = code + OFF(image, code, bytecode) + STACK_INSTRUCTION;
    uint32_t index = STACK_INSTRUCTION;
    switch ((enum prb_instr)image->py.layout.trait[PRB_TRAIT_instr]) {
    case PRB_instr_LASTI_UNITS:
        index /= 2;
        image_write(image, at, &index, 4);
        return;
    case PRB_instr_LASTI_BYTES:
        image_write(image, at, &index, 4);
        return;
    case PRB_instr_PREV_INSTR:
    case PRB_instr_INSTR_PTR:
    default:
        image_word(image, at, pointer);
    }
}

static inline prb_addr stack_frame(struct stack_image *s, prb_addr code, prb_addr previous,
                                   bool entry)
{
    struct image *image = &s->f.image;
    prb_addr frame = image_alloc(image);
    uint64_t tag = PRB_IS(&image->py.layout, reference, TAGGED) ? 1 : 0;
    PUT(image, frame, frame, code, code | tag);
    PUT(image, frame, frame, previous, previous);
    PUT(image, frame, frame, is_entry, entry);
    stack_instruction(image, frame, code);
    return frame;
}

/* The shim below a call of the evaluator, where the version has one; else 0. */
static inline prb_addr stack_shim(struct stack_image *s)
{
    struct image *image = &s->f.image;
    if (!PRB_IS(&image->py.layout, entry, SHIM))
        return 0;
    prb_addr shim = image_alloc(image);
    PUT(image, shim, frame, owner, (uint64_t)PRB_NUM(&image->py.layout, owner_interpreter));
    return shim;
}

static inline void stack_thread(struct stack_image *s, size_t i)
{
    struct image *image = &s->f.image;
    prb_addr tstate = s->threads[i] = image_alloc(image), frame = stack_shim(s);
    for (size_t k = STACK_FRAMES; k-- > 0;)
        frame = s->frames[i][k] = stack_frame(s, s->codes[k], frame, k == STACK_FRAMES - 1);
    PUT(image, tstate, thread, interp, s->interp);
    PUT(image, tstate, thread, thread_id, 1000 + i);
    PUT(image, tstate, thread, native_thread_id, 2000 + i);
    PUT(image, tstate, thread, next, i ? s->threads[i - 1] : 0);
    if (PRB_IS(&image->py.layout, frame_chain, CFRAME)) {
        prb_addr cframe = image_alloc(image);
        PUT(image, cframe, cframe, current_frame, frame);
        PUT(image, tstate, thread, cframe, cframe);
    } else {
        PUT(image, tstate, thread, frame, frame);
    }
}

static inline void stack_gil(struct stack_image *s)
{
    struct image *image = &s->f.image;
    struct prb_py *py = &image->py;
    if (PRB_IS(&py->layout, gil, STATIC)) {
        py->tstate_current = image_alloc(image);
        image_word(image, py->tstate_current, s->threads[0]);
        return;
    }
    s->gil = PRB_IS(&py->layout, gil, RUNTIME) ? s->runtime + OFF(image, runtime, gil)
                                               : image_alloc(image);
    PUT(image, s->interp, interp, gil, s->gil);
    PUT(image, s->gil, gil, last_holder, s->threads[0]);
    PUT(image, s->gil, gil, locked, 1);
}

static inline void stack_image_init(struct stack_image *s, size_t version)
{
    *s = (struct stack_image){0};
    fixture_init(&s->f, version);
    struct image *image = &s->f.image;
    s->code_type = builtin(image, "code", 0, s->f.types.object);
    s->bytes_type = builtin(image, "bytes", FLAG_BYTES, s->f.types.object);
    s->runtime = stack_room(image);
    s->interp = stack_room(image);
    s->interpreters = image_alloc(image);
    image_word(image, s->interpreters, s->interp);
    for (size_t k = 0; k < STACK_FRAMES; k++)
        s->codes[k] = stack_code(s, stack_names[k]);
    for (size_t i = 0; i < STACK_THREADS; i++)
        stack_thread(s, i);
    PUT(image, s->interp, interp, threads_head, s->threads[STACK_THREADS - 1]);
    image->py.runtime = PRB_HAS(&image->py.layout, runtime, interpreters_head) ? s->runtime : 0;
    image->py.interpreters = s->interpreters;
    stack_gil(s);
}

static inline void stack_image_deinit(struct stack_image *s)
{
    prb_code_cache_free(s->f.image.py.codes);
    s->f.image.py.codes = NULL;
    fixture_deinit(&s->f);
}

#endif
