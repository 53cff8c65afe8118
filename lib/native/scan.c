/*
 * Finds a caller by a scan of the stack: the first word up the stack that can be a return address.
 *
 * It must point behind a call instruction in executable memory, and the walk must go on well from
 * there.  Words left over from earlier calls pass the first test often, the second seldom. The
 * callee-saved registers are taken to be unchanged, but for the frame pointer, which may have been
 * pushed right below the return address.
 */
#include "native/step.h"

#define SCAN_BYTES 65536   /* of the stack, to scan */
#define CANDIDATES_MAX 128 /* words tried by walking on from them */
#define TRIAL_STEPS 6      /* frames that are proof enough */
#define PUSHED_WORDS 6     /* callee-saved registers of a prologue, below the return address */
#define FRAME_BYTES_MAX 1048576

/* Registers that are known at the cursor. */
static void collect(struct prb_unwinder *u, unw_cursor_t *cursor, struct prb_registers *out)
{
    out->known = 0;
    for (unsigned i = 0; i < u->arch->register_count; i++) {
        unw_word_t value;
        int number = u->arch->registers[i].unwind;
        if (number >= 0 && u->lib->unw_get_reg(cursor, number, &value) == 0)
            prb_register_set(out, i, value);
    }
}

/* How many frames the walk goes on from registers; TRIAL_STEPS when it comes to a declared end, or
 * to more code without unwind information, which is no argument against the way there. */
static unsigned trial(struct prb_unwinder *u, const struct prb_registers *registers)
{
    unw_cursor_t cursor;
    if (!prb_unwind_start(u, registers, true, &cursor))
        return 0;
    prb_addr pc = 0, sp = registers->value[u->arch->sp];
    for (unsigned steps = 0; steps < TRIAL_STEPS; steps++) {
        prb_addr from = sp;
        bool signal = pc && prb_unwinder_pc(u, pc)->signal_return;
        switch (prb_unwind_step(u, &cursor, from, signal, &pc, &sp)) {
        case PRB_STEP_END:
            return prb_unwind_end_is_declared(u, &cursor) ? TRIAL_STEPS : 0;
        case PRB_STEP_FRAME:
            if (sp <= from || (!signal && !prb_unwinder_pc(u, pc)->after_call))
                return 0;
            break;
        case PRB_STEP_MISSING:
            return steps ? TRIAL_STEPS : 0;
        case PRB_STEP_LACKING:
            return steps;
        case PRB_STEP_BAD:
            return 0;
        }
    }
    return TRIAL_STEPS;
}

/* Try the word in slot as return address, with each frame pointer that may be the caller's. */
static unsigned try_slot(struct prb_unwinder *u, prb_addr slot, prb_addr sp,
                         struct prb_registers *registers)
{
    unsigned fp = u->arch->fp, best = trial(u, registers);
    if (best == TRIAL_STEPS)
        return best;
    struct prb_registers with = *registers;
    for (unsigned i = 1; i <= PUSHED_WORDS && slot - 8 * i >= sp; i++) {
        uint64_t word;
        if (!prb_unwinder_word(u, slot - 8 * i, &word) || word <= slot || word % 8 ||
            word - slot > FRAME_BYTES_MAX)
            continue;
        prb_register_set(&with, fp, word);
        unsigned got = trial(u, &with);
        if (got > best) {
            best = got;
            *registers = with;
        }
    }
    return best;
}

bool prb_scan_for_caller(struct prb_unwinder *u, unw_cursor_t *cursor, prb_addr sp,
                         struct prb_registers *out)
{
    struct prb_registers here, best;
    collect(u, cursor, &here);
    unsigned best_steps = 0, tried = 0;
    for (prb_addr slot = (sp + 7) & ~UINT64_C(7);
         slot - sp < SCAN_BYTES && tried < CANDIDATES_MAX && best_steps < TRIAL_STEPS; slot += 8) {
        uint64_t word;
        if (!prb_unwinder_word(u, slot, &word))
            break;
        word &= u->arch->code_mask;
        const struct prb_pc *pc = prb_unwinder_pc(u, word);
        if (!pc->executable || !pc->after_call)
            continue;
        tried++;
        struct prb_registers registers = here;
        prb_register_set(&registers, u->arch->pc, word);
        prb_register_set(&registers, u->arch->sp, slot + 8);
        unsigned steps = try_slot(u, slot, sp, &registers);
        if (steps > best_steps) {
            best_steps = steps;
            best = registers;
        }
    }
    if (best_steps)
        *out = best;
    return best_steps > 0;
}
