/* The crash handler as a part of the probe. */
#include "inject/probe/part.h"

#include "inject/probe/crash/crash.h"

static void follow(bool on, uint32_t wait_ms)
{
    if (on && wait_ms) /* the calling thread is one of the program's */
        prb_crash_stack();
    prb_crash_python(on, wait_ms);
}

const struct prb_probe_part prb_probe_part_crash = {
    .name = "crash",
    .configure = prb_crash_configure,
    .alone = true,
    .is_on = prb_crash_is_on,
    .follow = follow,
    .detach = prb_crash_python_detach,
    .end = prb_crash_end,
    .forked = prb_crash_forked,
};
