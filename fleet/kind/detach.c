/* End each rank's probe.  No args.  result: struct prb_eval_answers. */
#include "base/error.h"
#include "fleet/kind/answers.h"
#include "inject/control.h"

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    (void)args;
    PRB_AUTO(prb_control) struct prb_control *control = prb_control_open(seat->member.pid, err);
    if (!control && err->code == PRB_NOT_FOUND && prb_fleet_seat_lives(seat))
        return prb_text_part(out, "it had no probe", false, err);
    return control && prb_control_detach(control, err) &&
           prb_text_part(out, "the probe ended", false, err);
}

const struct prb_fleet_kind prb_fleet_kind_detach = {
    .name = "detach",
    .needs = PRB_FLEET_CONTROL,
    .budget = 15,
    .of_rank = of_rank,
    .at_root = prb_texts_of_host,
};
