/*
 * A function of C that a class of PyTorch's has as a method: the function in its PyMethodDef is
 * replaced, which no attribute and no dict shows.
 */
#ifndef PRB_PROBE_TORCH_METHOD_H
#define PRB_PROBE_TORCH_METHOD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct prb_py;

#define PRB_TORCH_VARARGS_KEYWORDS 0x0003   /* (self, args, kwargs) */
#define PRB_TORCH_FASTCALL_KEYWORDS 0x0082u /* (self, arguments, count, names) */

typedef void prb_torch_any_function(void);

/* PyMethodDef (Include/methodobject.h). */
struct prb_torch_method {
    const char *name;
    prb_torch_any_function *_Atomic call;
    int flags;
    const char *doc;
};

/* That of a PyMethodDescrObject: a PyDescrObject (object, type, name, qualified name), then the
 * PyMethodDef (Include/cpython/descrobject.h, the same since 3.3). */
struct prb_torch_method *prb_torch_method_of_descriptor(const struct prb_py *descriptor);
/* That of a PyCFunctionObject: an object, then the PyMethodDef (Include/cpython/methodobject.h). */
struct prb_torch_method *prb_torch_method_of_function(const struct prb_py *function);

/* Whether it is one of this name, and can be stored to.  Read and tried by the kernel, which refuses
 * where we would fault. */
bool prb_torch_method_is(struct prb_torch_method *candidate, const char *name);

#endif
