/*
 * Local variables of a frame.
 */
#ifndef PRB_PY_LOCALS_H
#define PRB_PY_LOCALS_H

#include "py/object/object.h"
#include "py/stack.h"

#define PRB_LOCALS_MAX 4096 /* of one frame */

struct prb_variable {
    const char *name; /* valid during the call */
    prb_addr object;  /* 0: number holds it */
    bool is_number;   /* an int stored in the reference itself (3.14+, tagged) */
    int64_t number;
    bool arg;
};
typedef bool prb_variable_fn(void *context, const struct prb_variable *variable);

/*
 * The bound variables of a frame in the order of the code: arguments, locals, cells and free
 * variables (dereferenced); of module and class bodies the names of their mapping, but for those
 * that begin with two underscores.
 */
bool prb_locals_each(struct prb_objects *objects, const struct prb_raw_frame *frame,
                     const struct prb_code_object *code, prb_variable_fn *each, void *context,
                     struct prb_error *err);
/* The first argument of a frame, by its place alone; 0: it has no value, or lies elsewhere. */
prb_addr prb_locals_first(struct prb_objects *objects, const struct prb_raw_frame *frame);

#endif
