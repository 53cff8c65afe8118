/* torch: dtypes and devices as objects of their own. */
#include <inttypes.h>
#include <string.h>

#include "py/object/reader.h"
#include "tensor/tensor.h"

enum { DTYPE_NAME = 1, DTYPE_NAME_LONGEST = 64 }; /* THPDtype: int8 code, char name[65] */

bool prb_torch_constant_read(struct prb_objects *objects, prb_addr object, const char *type_name,
                             struct prb_buf *out, struct prb_error *err)
{
    prb_addr body = object + (uint64_t)PRB_OFF(objects->layout, object, size);
    if (!strcmp(type_name, "torch.dtype")) {
        const char *name = prb_objects_cstring(objects, body + DTYPE_NAME, DTYPE_NAME_LONGEST);
        if (!name)
            return prb_fail_addr(err, object, "the dtype at 0x%" PRIx64 " cannot be read", object);
        prb_buf_addf(out, "torch.%s", name);
        return true;
    }
    if (!strcmp(type_name, "torch.device")) {
        const int8_t *bytes = prb_objects_get(objects, body, 2);
        if (!bytes || !prb_torch_device(bytes[0]))
            return prb_fail_addr(err, object, "the device at 0x%" PRIx64 " cannot be read", object);
        prb_buf_addf(out, "device(type='%s'", prb_torch_device(bytes[0]));
        if (bytes[1] >= 0)
            prb_buf_addf(out, ", index=%d", bytes[1]);
        prb_buf_addc(out, ')');
        return true;
    }
    return prb_fail(err, PRB_UNSUPPORTED, "%s is not a known constant", type_name);
}
