/*
 * Whether a thread's stack is clean: no return address into the allocator, the loader or another
 * function that must not be entered twice.  First every word is scanned, which errs on the safe
 * side: return addresses of earlier calls remain in the gaps.  If the scan finds one, the stack is
 * unwound (lib/native), and every frame must be certain.
 */
#include <string.h>

#include "arch/arch.h"
#include "inject/enter/steps.h"
#include "native/native.h"

#define STACK_MAX (16u << 20) /* deeper stacks are not scanned */
#define STACK_FIRST (256u << 10)

void prb_chooser_deinit(struct prb_chooser *chooser)
{
    free(chooser->room.words);
    chooser->room = (struct prb_stack_room){0};
    if (chooser->unwinder)
        prb_unwinder_free(chooser->unwinder);
    chooser->unwinder = NULL;
}

static bool enlarge(struct prb_chooser *chooser, size_t bytes)
{
    if (bytes <= chooser->room.bytes)
        return true;
    bytes = bytes > STACK_FIRST ? bytes : STACK_FIRST;
    uint64_t *words = realloc(chooser->room.words, bytes);
    if (!words)
        return false;
    chooser->room = (struct prb_stack_room){words, bytes};
    return true;
}

bool prb_stack_room(struct prb_chooser *chooser, struct prb_error *err)
{
    if (!enlarge(chooser, STACK_MAX))
        return prb_nomem(err);
    /* Page faults here, not while a thread is stopped. */
    memset(chooser->room.words, 0, STACK_FIRST);
    return true;
}

/* The stack that sp is in; the last one is kept, since the thread may be stopped now.  All stacks of a
 * process are executable once it has loaded a library that does not say that it needs none such. */
static const struct prb_map *stack_of(struct prb_chooser *chooser, prb_addr sp)
{
    struct prb_map *map = &chooser->stack;
    if ((sp < map->start || sp >= map->end) && !prb_proc_map_from(chooser->proc, sp, false, map))
        *map = (struct prb_map){0};
    return map->start <= sp && sp < map->end && map->readable && map->writable && !map->inode
               ? map
               : NULL;
}

bool prb_stack_below(struct prb_chooser *chooser, prb_addr sp, size_t bytes)
{
    const struct prb_map *map = stack_of(chooser, sp);
    return map && sp - map->start >= bytes;
}

/* Whether a word of the stack is a return address into a danger, and not just the address of a
 * function, such as the one that the loader leaves for exit(3) at the bottom of the main stack. */
static bool returns_into(struct prb_chooser *chooser, uint64_t word)
{
    const struct prb_danger *danger = prb_danger_at(chooser->addresses, word);
    uint8_t code[PRB_CALL_MAX];
    if (!danger)
        return false;
    if (danger->called &&
        prb_mem_read_some(chooser->mem, word - sizeof code, code, sizeof code) == sizeof code &&
        !prb_arch_host()->ends_in_call(code))
        return false;
    chooser->danger = danger;
    return true;
}

static bool pc_is_clean(struct prb_chooser *chooser, const struct prb_registers *registers)
{
    const struct prb_arch *arch = prb_arch_host();
    chooser->danger = prb_danger_at(chooser->addresses, registers->value[arch->pc]);
    if (chooser->danger)
        return false;
    /* On architectures with a link register, a leaf function keeps its return address there. */
    return arch->return_address == arch->pc ||
           !prb_register_known(registers, arch->return_address) ||
           !returns_into(chooser, registers->value[arch->return_address] & arch->code_mask);
}

enum prb_unfit prb_stack_scan(struct prb_chooser *chooser, const struct prb_registers *registers)
{
    prb_addr sp = registers->value[prb_arch_host()->sp];
    chooser->stack = (struct prb_map){0};
    const struct prb_map *map = stack_of(chooser, sp);
    if (sp % 8 || !map || map->end - sp > STACK_MAX || !enlarge(chooser, map->end - sp))
        return PRB_UNFIT_PLACE;
    size_t len = map->end - sp;
    chooser->stack_len = 0;
    if (prb_mem_read_some(chooser->mem, sp, chooser->room.words, len) != len)
        return PRB_UNFIT_MOVED;
    chooser->stack_len = len;
    if (!pc_is_clean(chooser, registers))
        return PRB_UNFIT_STACK;
    const struct prb_danger *first = chooser->addresses->dangers;
    prb_addr low = first->start, high = first[chooser->addresses->danger_count - 1].end;
    for (size_t i = 0; i < len / 8; i++) {
        uint64_t word = chooser->room.words[i] & prb_arch_host()->code_mask;
        if (word > low && word <= high && returns_into(chooser, word))
            return PRB_UNFIT_STACK;
    }
    return PRB_FIT;
}

static bool frames_are_clean(struct prb_chooser *chooser, const struct prb_native_stack *stack)
{
    for (size_t i = 0; i < stack->count; i++) {
        const struct prb_native_frame *frame = &stack->frames[i];
        const struct prb_danger *danger = prb_danger_at(chooser->addresses, frame->pc);
        if (danger)
            chooser->danger = danger;
        if (danger || frame->guessed || frame->signal || !frame->module)
            return false;
    }
    return !stack->broken && stack->count > 1;
}

enum prb_unfit prb_stack_unwound(struct prb_chooser *chooser, const struct prb_registers *registers)
{
    if (!chooser->stack_len)
        return PRB_UNFIT_STACK;
    if (!chooser->unwinder)
        chooser->unwinder = prb_unwinder_new(chooser->modules, chooser->mem, NULL);
    struct prb_thread_copy copy = {
        .registers = *registers,
        .stack_start = registers->value[prb_arch_host()->sp],
        .stack = (uint8_t *)chooser->room.words,
        .stack_len = chooser->stack_len,
    };
    struct prb_native_stack stack;
    bool suffices;
    if (!chooser->unwinder || !prb_unwind(chooser->unwinder, &copy, &stack, &suffices, NULL))
        return PRB_UNFIT_STACK;
    return suffices && frames_are_clean(chooser, &stack) ? PRB_FIT : PRB_UNFIT_STACK;
}
