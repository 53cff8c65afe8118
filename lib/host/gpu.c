/* The GPUs of this machine: see gpu.h. */
#include "host/gpu.h"

#include <stdlib.h>

void prb_gpus_deinit(struct prb_gpus *gpus)
{
    free(gpus->items);
    free(gpus->processes);
}

bool prb_gpus_read(bool processes, struct prb_gpus *out, struct prb_error *err)
{
    struct prb_error nvidia = {0};
    if (!prb_gpus_nvml(processes, out, &nvidia) && nvidia.code != PRB_UNSUPPORTED) {
        if (err)
            *err = nvidia;
        return false;
    }
    if (!prb_gpus_amd("/sys/class/drm", out, err))
        return false;
    return out->count ||
           prb_fail(err, PRB_UNSUPPORTED, "no GPU is seen here: %s, and no amdgpu", nvidia.text);
}
