/*
 * A program that `launch` starts: Python first runs a few lines of ours, which wait until the
 * client has set its breakpoints, and then run the program.
 */
#ifndef PRB_DAP_PROGRAM_H
#define PRB_DAP_PROGRAM_H

#include "dap/session/session.h"

/* The program waits until prb_dap_program_let_go.  arguments: of launch.  NOT_FOUND: there is no
 * such program or interpreter. */
struct prb_dap_program *prb_dap_program_start(struct prb_dap_session *session,
                                              const json_t *arguments,
                                              struct prb_error *err) PRB_MUST_CHECK;
pid_t prb_dap_program_pid(const struct prb_dap_program *program);
/* Whether we read its output ourselves. */
bool prb_dap_program_is_read(const struct prb_dap_program *program);
/* Let the program run. */
void prb_dap_program_let_go(struct prb_dap_program *program);
/* Its status for wait(2), once it has ended and its output was read; false: it is not our child. */
bool prb_dap_program_status(struct prb_dap_program *program, int *status_out);
/* SIGTERM to all processes that descend from the program, not to itself; those that have not ended
 * when it is closed get SIGKILL. */
void prb_dap_program_end_children(struct prb_dap_program *program);
/* NULL is harmless.  leave: do not end it. */
void prb_dap_program_close(struct prb_dap_program *program, bool leave);

#endif
