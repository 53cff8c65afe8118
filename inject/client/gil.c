/* What to say when the probe could not acquire the GIL: see control.h. */
#include <string.h>

#include "base/error.h"
#include "inject/control.h"

bool prb_explain_gil(pid_t pid, struct prb_error *err)
{
    char holder[300];
    if (pid <= 0 || err->code != PRB_BUSY || !strstr(err->text, "GIL") ||
        !prb_gil_holder(pid, holder, sizeof holder, NULL))
        return false;
    struct prb_error before = *err;
    if (!*holder)
        return prb_error_remedy(err, "no thread holds it now: try again");
    prb_fail(err, PRB_BUSY, "%.100s: held by %s", before.text, holder);
    return true;
}
