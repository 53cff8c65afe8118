/*
 * The byte code of our Python for a target's interpreter (inject/probe/python/bytecode_form.h), so that
 * the target compiles nothing when a debugger attaches: from the cache of the user, else made by
 * the target's own interpreter binary in a process beside it, while the probe is loaded.
 *
 * Nothing here fails: without it the target compiles.
 */
#ifndef PRB_INJECT_BYTECODE_H
#define PRB_INJECT_BYTECODE_H

#include <sys/types.h>

#include "base/buf.h"

struct prb_bytecode;

/* Begin to get it; NULL: it will not be had. */
struct prb_bytecode *prb_bytecode_begin(pid_t pid);
/* Wait for it, 3 s at most; its bytes until free, none: it could not be had. */
const struct prb_buf *prb_bytecode_wait(struct prb_bytecode *bytecode);
void prb_bytecode_free(struct prb_bytecode *bytecode);
PRB_DEFINE_AUTO_PTR(prb_bytecode, struct prb_bytecode, prb_bytecode_free)

#endif
