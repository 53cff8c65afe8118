/*
 * This process's own memory, read through the kernel: a stale pointer is a short read, not a crash.
 * After fork it follows the child that uses it.
 */
#include "mem/mem.h"

struct self {
    struct prb_mem base;
    struct prb_mem *inner;
    pid_t pid; /* whom inner reads */
};

static bool self_readv(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                       struct prb_error *err)
{
    struct self *self = (struct self *)mem;
    if (self->pid != getpid()) {
        struct prb_mem *inner = prb_mem_process_new(getpid(), err);
        if (!inner)
            return false;
        prb_mem_free(self->inner);
        self->inner = inner;
        self->pid = getpid();
    }
    return self->inner->ops->readv(self->inner, ranges, count, err);
}

static void self_free(struct prb_mem *mem)
{
    prb_mem_free(((struct self *)mem)->inner);
    free(mem);
}

static const struct prb_mem_ops self_ops = {"self", self_readv, self_free};

struct prb_mem *prb_mem_self_new(struct prb_error *err)
{
    PRB_AUTO(prb_mem) struct prb_mem *inner = prb_mem_process_new(getpid(), err);
    if (!inner)
        return NULL;
    struct self *self = calloc(1, sizeof *self);
    if (!self)
        return PRB_NULL(prb_nomem(err));
    *self = (struct self){{&self_ops, 0, 0}, PRB_STEAL(inner), getpid()};
    return &self->base;
}
