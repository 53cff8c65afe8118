/*
 * Names for the stacks that allocate.  A code object counts as the one that was seen if it still has
 * the names, the file and the line table that it had then: its address may be another's by now.
 */
#include <string.h>

#include "allocation/allocation.h"

void prb_allocation_names_deinit(struct prb_allocation_names *names)
{
    free(names->sites);
    prb_arena_deinit(&names->arena);
    *names = (struct prb_allocation_names){0};
}

static bool is_same(struct prb_py *py, const struct prb_site_frame *frame)
{
    static const enum prb_field fields[] = {
#define F(field) PRB_F_code_##field,
        PRB_CODE_CHECK_FIELDS(F)
#undef F
    };
    uint64_t words[sizeof fields / sizeof *fields] = {0};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (py->layout.offset[fields[i]] != PRB_ABSENT &&
            !prb_py_field(py, frame->code, fields[i], &words[i], NULL))
            return false;
    return prb_code_check(words, sizeof words / sizeof *words) == frame->check;
}

static void name_frame(struct prb_target *target, const struct prb_site_frame *frame,
                       struct prb_site_name *out)
{
    for (size_t i = 0; i < target->runtime_count; i++) {
        struct prb_py *py = &target->pys[i];
        const struct prb_code_object *code =
            is_same(py, frame) ? prb_code_get(py, frame->code, false, NULL) : NULL;
        if (!code)
            continue;
        out->name = code->name;
        out->function = code->qualname ? code->qualname : code->name;
        out->file = code->filename;
        out->first_line = code->first_line;
        out->line = prb_code_position(py, code, frame->instruction).line;
        return;
    }
}

static bool name_site(struct prb_target *target, const struct prb_allocations *allocations,
                      const struct prb_site *site, struct prb_allocation_names *names,
                      struct prb_site_names *out)
{
    size_t native = site->caller != 0;
    out->count = native + site->count;
    out->items = prb_arena_alloc(&names->arena, (out->count + 1) * sizeof *out->items);
    if (!out->items)
        return false;
    memset(out->items, 0, (out->count + 1) * sizeof *out->items);
    out->items[0].native = native;
    for (uint32_t i = 0; i < site->count; i++)
        name_frame(target, &allocations->frames[site->first + i], &out->items[native + i]);
    return true;
}

/* The native callers of all sites: symbols, in one pass over each file. */
static bool name_callers(struct prb_target *target, const struct prb_allocations *allocations,
                         struct prb_allocation_names *names, struct prb_error *err)
{
    size_t count = allocations->head.site_count;
    PRB_AUTO_FREE struct prb_native_frame *frames = calloc(count + 1, sizeof *frames);
    if (!frames)
        return prb_nomem(err);
    for (size_t i = 0; i < count; i++) {
        frames[i].pc = allocations->sites[i].caller;
        frames[i].returning = true;
        frames[i].module = frames[i].pc ? prb_modules_find(&target->modules, frames[i].pc) : NULL;
    }
    struct prb_unwinder *unwinder = prb_target_unwinder(target, NULL);
    struct prb_native_stack stack = {.frames = frames, .count = count};
    if (unwinder)
        prb_unwinder_name(unwinder, &stack, 1, false);
    for (size_t i = 0; i < count; i++) {
        struct prb_site_name *name = &names->sites[i].items[0];
        if (!frames[i].pc)
            continue;
        name->function =
            frames[i].symbol ? prb_arena_strdup(&names->arena, frames[i].symbol) : NULL;
        name->name = name->function;
        name->file = frames[i].module ? frames[i].module->path : NULL;
    }
    return true;
}

/* All code objects come in a few calls. */
static void expect(struct prb_target *target, const struct prb_allocations *allocations)
{
    size_t count = allocations->head.frame_count;
    PRB_AUTO_FREE prb_addr *codes = calloc(count + 1, sizeof *codes);
    for (size_t i = 0; codes && i < count; i++)
        codes[i] = allocations->frames[i].code;
    if (codes && target->runtime_count)
        prb_codes_expect(&target->pys[0], codes, count);
}

bool prb_allocation_names_find(struct prb_target *target, const struct prb_allocations *allocations,
                               struct prb_allocation_names *out, struct prb_error *err)
{
    size_t count = allocations->head.site_count;
    out->sites = calloc(count + 1, sizeof *out->sites);
    if (!out->sites)
        return prb_nomem(err);
    for (size_t i = 0; i < target->runtime_count; i++)
        prb_codes_new_reading(&target->pys[i]);
    expect(target, allocations);
    for (size_t i = 0; i < count; i++)
        if (!name_site(target, allocations, &allocations->sites[i], out, &out->sites[i]))
            return prb_nomem(err);
    return name_callers(target, allocations, out, err);
}

const struct prb_site_name *prb_site_told_by(const struct prb_site_names *site)
{
    for (size_t i = 0; i < site->count; i++)
        if (!site->items[i].native && site->items[i].function)
            return &site->items[i];
    return site->count && site->items[0].native ? &site->items[0] : NULL;
}
