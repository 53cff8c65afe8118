/*
 * A target as a whole, inside the library: what struct prb_target of probing.h holds.
 * Layer: above py and native, below sql.
 */
#ifndef PRB_TARGET_TARGET_H
#define PRB_TARGET_TARGET_H

#include "native/native.h"
#include "py/object.h"
#include "py/stack.h"

struct prb_target {
    struct prb_target_info info;
    struct prb_arena arena;      /* strings of info */
    struct prb_proc *proc;
    struct prb_mem *mem;         /* what decoding reads through; borrowed from proc */
    struct prb_modules modules;
    struct prb_py *runtimes;     /* most likely first */
    size_t runtime_count;
    struct prb_sampler *sampler; /* of runtimes[0], kept warm */
};

#endif
