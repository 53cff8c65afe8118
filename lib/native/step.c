/* One step of the walk: from a frame to its caller. */
#include "native/step.h"

bool prb_unwind_start(struct prb_unwinder *u, const struct prb_registers *registers, bool returning,
                      unw_cursor_t *cursor)
{
    u->registers = *registers;
    u->lacking = u->missing = false;
    u->reads = 0;
    /* A fresh cursor takes its program counter for the running instruction. */
    if (returning)
        u->registers.value[u->arch->pc]--;
    return u->lib->unw_init_remote(cursor, u->space, u) == 0;
}

enum prb_step prb_unwind_step(struct prb_unwinder *u, unw_cursor_t *cursor, prb_addr sp,
                              bool signal, prb_addr *pc_out, prb_addr *sp_out)
{
    u->lacking = u->missing = false;
    u->reads = 0;
    int got = u->lib->unw_step(cursor);
    if (u->missing)
        return PRB_STEP_MISSING;
    if (u->lacking)
        return PRB_STEP_LACKING;
    unw_word_t pc, next;
    if (got < 0)
        return PRB_STEP_BAD;
    if (got == 0 || u->lib->unw_get_reg(cursor, UNW_REG_IP, &pc) || pc == 0)
        return PRB_STEP_END;
    /* The stack grows down; only a signal handler's may lie elsewhere (sigaltstack(2)). */
    if (u->lib->unw_get_reg(cursor, UNW_REG_SP, &next) || (next < sp && !signal))
        return PRB_STEP_BAD;
    if (!prb_unwinder_pc(u, pc)->executable)
        return PRB_STEP_BAD;
    *pc_out = pc;
    *sp_out = next;
    return PRB_STEP_FRAME;
}

bool prb_unwind_end_is_declared(struct prb_unwinder *u, unw_cursor_t *cursor)
{
    unw_save_loc_t where;
    int number = u->arch->registers[u->arch->return_address].unwind;
    return u->lib->unw_get_save_loc(cursor, number, &where) == 0 && where.type == UNW_SLT_NONE;
}
