/* Maps, read anew. */
#include "table/maps_now.h"

bool prb_maps_now(struct prb_proc *proc, struct prb_maps *out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!prb_proc_text(proc, "maps", &text, err))
        return false;
    return prb_maps_parse(text.data ? text.data : "", text.len, out, err);
}
