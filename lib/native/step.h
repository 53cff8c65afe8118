/* Single steps of the walk, shared by unwind.c and scan.c. */
#ifndef PRB_NATIVE_STEP_H
#define PRB_NATIVE_STEP_H

#include "native/unwinder.h"

enum prb_step {
    PRB_STEP_FRAME,   /* one frame out */
    PRB_STEP_END,     /* this was the outermost */
    PRB_STEP_LACKING, /* a register is needed that is not known */
    PRB_STEP_MISSING, /* no unwind information for this code */
    PRB_STEP_BAD,     /* what it says cannot be */
};

/* Set a cursor to registers.  returning: their program counter is a return address. */
bool prb_unwind_start(struct prb_unwinder *u, const struct prb_registers *registers, bool returning,
                      unw_cursor_t *cursor);
/* One frame out from the one whose stack pointer is sp; signal: it is the kernel's frame under a
 * signal handler. */
enum prb_step prb_unwind_step(struct prb_unwinder *u, unw_cursor_t *cursor, prb_addr sp,
                              bool signal, prb_addr *pc_out, prb_addr *sp_out);
/* After PRB_STEP_END: whether the unwind rules declare this frame the outermost, or a zero was
 * merely met. */
bool prb_unwind_end_is_declared(struct prb_unwinder *u, unw_cursor_t *cursor);
/* Find the caller of the frame at cursor among the words from sp upwards: its registers.  False:
 * nothing plausible. */
bool prb_scan_for_caller(struct prb_unwinder *u, unw_cursor_t *cursor, prb_addr sp,
                         struct prb_registers *out);

#endif
