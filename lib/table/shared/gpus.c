/* The GPUs of the machine: see gpus.h. */
#include "table/shared/gpus.h"

bool prb_rows_gpus(struct prb_rows *rows, bool processes, struct prb_gpus *out,
                   struct prb_error *err)
{
    struct prb_error why = {0};
    if (prb_gpus_read(processes, out, &why))
        return true;
    if (why.code == PRB_UNSUPPORTED) {
        prb_rows_warn(rows, "%s", why.text);
        return true;
    }
    if (err)
        *err = why;
    return false;
}
