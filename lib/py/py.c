/* Reading one field through the layout. */
#include "py/py.h"

#include <string.h>

bool prb_py_field(struct prb_py *py, prb_addr addr, enum prb_field field, uint64_t *out,
                  struct prb_error *err)
{
    int32_t offset = py->layout.offset[field];
    unsigned width = prb_field_width(field);
    if (offset == PRB_ABSENT || width == 0 || width > 8)
        return prb_fail(err, PRB_UNSUPPORTED, "layout %s has no %s", py->layout.name,
                        prb_field_name(field));
    uint64_t value = 0;
    if (!prb_mem_read(py->mem, addr + (prb_addr)(int64_t)offset, &value, width, err))
        return prb_error_prefix(err, "%s", prb_field_name(field));
    *out = value;
    return true;
}
