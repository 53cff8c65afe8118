/*
 * Byte code that came with a debug session, while it lasts: taking it out of its form
 * (bytecode_form.h) into code objects, when it is this interpreter's own.
 */
#ifndef PRB_PROBE_PYTHON_BYTECODE_H
#define PRB_PROBE_PYTHON_BYTECODE_H

#include "inject/probe/python/api.h"

struct prb_bytecode_blob;
void prb_bytecode_release(struct prb_bytecode_blob *kept);
PRB_DEFINE_AUTO_PTR(prb_bytecode_blob, struct prb_bytecode_blob, prb_bytecode_release)
/* A copy of a sound blob; NULL of any other.  The client that sends it may run any code here
 * anyway, and answers for where it has it from. */
struct prb_bytecode_blob *prb_bytecode_copy(const char *blob, size_t len);
/* From now on this one, which is taken; NULL: none. */
void prb_bytecode_use(struct prb_bytecode_blob *kept);
/* In a child after fork(2). */
void prb_bytecode_forked(void);
/* With the GIL: a tuple of the code objects of a source's pieces, a new reference.  NULL, and no
 * exception: there is none, or it is another interpreter's. */
struct prb_py *prb_bytecode_pieces(const struct prb_py_api *py, const char *file);

#endif
