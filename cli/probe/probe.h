/* From what the user named to its probe; the probe is loaded first where there is none. */
#ifndef PRB_CLI_PROBE_H
#define PRB_CLI_PROBE_H

#include "cli/command.h"
#include "inject/control.h"
#include "inject/inject.h"

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)
PRB_DEFINE_AUTO(prb_eval_result, struct prb_eval_result, prb_eval_result_free)
PRB_DEFINE_AUTO(prb_strings, struct prb_strings, prb_strings_free)

/* A connection to the probe of the process that the user named; *pid_out 0: not visible from here.
 * load: where there is none load it, and say so in one line on standard error. */
struct prb_control *prb_run_control(const struct prb_run *run, bool load, pid_t *pid_out,
                                    struct prb_error *err) PRB_MUST_CHECK;

/* "loaded in 8.1 ms, one thread paused 90 µs (thread 12)": what an injection did, as one sentence.
 */
void prb_report_text(const struct prb_inject_report *report, char *text, size_t size);

/* Whether a process runs, its first thread not yet dead. */
bool prb_process_runs(pid_t pid);

#endif
