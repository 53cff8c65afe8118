/* Memory that the caller reads for us, by a function: what gdb and tests bring. */
#include "mem/mem.h"

struct callback {
    struct prb_mem base;
    prb_mem_fn *read;
    void *context;
};

static bool callback_readv(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                           struct prb_error *err)
{
    (void)err;
    struct callback *self = (struct callback *)mem;
    for (size_t i = 0; i < count; i++) {
        struct prb_range *range = &ranges[i];
        range->got =
            range->len ? self->read(self->context, range->addr, range->buf, range->len) : 0;
        if (range->got > range->len)
            range->got = range->len;
    }
    return true;
}

static void callback_free(struct prb_mem *mem) { free(mem); }

static const struct prb_mem_ops callback_ops = {"callback", callback_readv, callback_free};

struct prb_mem *prb_mem_callback_new(prb_mem_fn *read, void *context, struct prb_error *err)
{
    struct callback *self = calloc(1, sizeof *self);
    if (!self)
        return PRB_NULL(prb_nomem(err));
    *self = (struct callback){{&callback_ops, 0, 0}, read, context};
    return &self->base;
}
