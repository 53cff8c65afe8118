/*
 * Names for many frames at once: each module's symbol table is read once for all its program
 * counters.  C++ names are demangled by the C++ runtime's own __cxa_demangle (Itanium C++ ABI,
 * section 3.4), loaded when the first one is met; without it they stay mangled.
 */
#include <dlfcn.h>
#include <string.h>

#include "base/hash_map.h"
#include "native/source.h"
#include "native/unwinder.h"

struct place {
    struct prb_module *module;
    uint64_t addr; /* in its file */
    struct prb_native_frame *frame;
};

/* Each address once: many threads stand at the same ones. */
struct places {
    struct place *items;
    size_t count, cap;
    struct prb_hash_map first; /* by address: the frame that is named, for all that stand there */
};

static void places_deinit(struct places *places)
{
    free(places->items);
    prb_hash_map_deinit(&places->first);
}
PRB_DEFINE_AUTO(places, struct places, places_deinit)

typedef char *demangle_fn(const char *name, char *buffer, size_t *len, int *status);

static demangle_fn *find_demangler(void)
{
    static _Atomic(demangle_fn *) found;
    static _Atomic bool tried;
    if (!tried) {
        void *runtime = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
        found = runtime ? (demangle_fn *)dlsym(runtime, "__cxa_demangle") : NULL;
        tried = true;
    }
    return found;
}

#define MANGLED_MAX 16384 /* a longer name is not worth the demangler's time and stack */

static const char *readable_name(struct prb_arena *arena, const char *name)
{
    if (strncmp(name, "_Z", 2) == 0 && strnlen(name, MANGLED_MAX) < MANGLED_MAX) {
        demangle_fn *demangle = find_demangler();
        int status = -1;
        PRB_AUTO_FREE char *text = demangle ? demangle(name, NULL, NULL, &status) : NULL;
        if (text && status == 0)
            return prb_arena_strdup(arena, text);
    }
    /* Without the version that some symbol tables append (printf@@GLIBC_2.2.5). */
    return prb_arena_strndup(arena, name, strcspn(name, "@"));
}

static int by_place(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* places[0 … count): of one module, ascending. */
static void name_module(struct prb_unwinder *u, struct prb_elf *elf, struct place *places,
                        size_t count)
{
    PRB_AUTO_FREE uint64_t *addrs = malloc(count * sizeof *addrs);
    PRB_AUTO_FREE struct prb_symbol *symbols = calloc(count, sizeof *symbols);
    if (!addrs || !symbols)
        return;
    for (size_t i = 0; i < count; i++)
        addrs[i] = places[i].addr;
    prb_elf_name(elf, addrs, count, symbols);
    const char *mangled = NULL, *name = NULL;
    for (size_t i = 0; i < count; i++) {
        if (symbols[i].name != mangled) {
            mangled = symbols[i].name;
            name = mangled ? readable_name(&u->arena, mangled) : NULL;
        }
        places[i].frame->symbol = name;
    }
}

static void source_module(struct prb_unwinder *u, struct prb_elf *elf, struct place *places,
                          size_t count)
{
    struct prb_source *source = prb_source_open(u->modules->proc, elf);
    if (!source)
        return;
    for (size_t i = 0; i < count; i++) {
        struct prb_native_frame *frame = places[i].frame;
        prb_source_line(source, places[i].addr, &u->arena, &frame->file, &frame->line);
    }
    prb_source_close(source);
}

/* The address of the instruction that runs or calls. */
static prb_addr place_of(const struct prb_native_frame *frame)
{
    return frame->pc - frame->returning;
}

/* The places of all frames that lie in files. */
static bool collect(struct prb_native_stack *stacks, size_t count, struct places *places)
{
    for (size_t s = 0; s < count; s++)
        for (size_t f = 0; f < stacks[s].count; f++) {
            struct prb_native_frame *frame = &stacks[s].frames[f];
            struct prb_hash_slot *slot;
            if (!frame->module)
                continue;
            if (!(slot = prb_hash_map_add(&places->first, place_of(frame))))
                return false;
            if (slot->pointer)
                continue;
            if (!PRB_GROW(places->items, places->count, places->cap))
                return false;
            slot->pointer = frame;
            places->items[places->count++] = (struct place){frame->module, place_of(frame), frame};
        }
    return true;
}

/* To each frame what was found for its place. */
static void share(struct prb_native_stack *stacks, size_t count, const struct places *places)
{
    for (size_t s = 0; s < count; s++)
        for (size_t f = 0; f < stacks[s].count; f++) {
            struct prb_native_frame *frame = &stacks[s].frames[f];
            const struct prb_native_frame *first =
                frame->module ? prb_hash_map_pointer(&places->first, place_of(frame)) : NULL;
            if (!first)
                continue;
            frame->symbol = first->symbol;
            frame->file = first->file;
            frame->line = first->line;
        }
}

void prb_unwinder_name(struct prb_unwinder *u, struct prb_native_stack *stacks, size_t count,
                       bool source_lines)
{
    PRB_AUTO(places) struct places places = {0};
    if (collect(stacks, count, &places) && places.count)
        qsort(places.items, places.count, sizeof *places.items, by_place);
    for (size_t i = 0, end; i < places.count; i = end) {
        struct place *first = &places.items[i];
        for (end = i; end < places.count && places.items[end].module == first->module;)
            end++;
        struct prb_elf *elf = prb_modules_elf(u->modules, first->module, NULL);
        if (!elf)
            continue;
        for (size_t k = i; k < end; k++)
            places.items[k].addr -= first->module->bias;
        name_module(u, elf, first, end - i);
        if (source_lines)
            source_module(u, elf, first, end - i);
    }
    share(stacks, count, &places);
}
