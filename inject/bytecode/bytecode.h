/*
 * The byte code of our Python code for a target's interpreter
 * (inject/probe/python/bytecode_form.h), so that the target need not compile when a debugger
 * attaches.  It comes from the user's cache, else a helper process compiles it with the target's
 * interpreter binary while the probe is loaded.
 *
 * Nothing here fails: without byte code the target compiles.
 */
#ifndef PRB_INJECT_BYTECODE_H
#define PRB_INJECT_BYTECODE_H

#include <sys/types.h>

#include "base/buf.h"

struct prb_bytecode;

/* Start to obtain it; NULL: it cannot be obtained. */
struct prb_bytecode *prb_bytecode_begin(pid_t pid);
/* Wait for it, 3 s at most.  The bytes are valid until free; none: it could not be obtained. */
const struct prb_buf *prb_bytecode_wait(struct prb_bytecode *bytecode);
void prb_bytecode_free(struct prb_bytecode *bytecode);
PRB_DEFINE_AUTO_PTR(prb_bytecode, struct prb_bytecode, prb_bytecode_free)

#endif
