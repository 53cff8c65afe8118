/* probing -t @JOB eval: what code says in each rank, equal answers together. */
#include "cli/fleet/eval.h"

#include "cli/fleet/act.h"

#define MORE 5.0 /* s beside the code's own time: loading a probe, waiting for the GIL */

bool prb_job_eval(const struct prb_run *run, const struct prb_job_code *code, struct prb_error *err)
{
    struct prb_job_act act = {
        .kind = "eval",
        .question = "Run this",
        .args = json_pack("{s:s, s:f, s:s*}", "code", code->code, "gil_timeout", code->gil_timeout,
                          "name_space", code->name_space),
        .budget = code->timeout > 0 ? code->timeout / 0.72 + MORE : 0,
        .json = code->json,
    };
    return act.args ? prb_job_act(run, &act, err)
                    : prb_cli_fail(err, PRB_USAGE, "", "the code is not UTF-8");
}
