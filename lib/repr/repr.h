/*
 * What an object looks like as text: repr() without running code.  Layer: above py and tensor,
 * below inspect.
 */
#ifndef PRB_REPR_REPR_H
#define PRB_REPR_REPR_H

#include "py/object/object.h"

struct prb_repr_limits {
    size_t characters; /* of the whole text, "…" included; 0: PRB_REPR_CHARACTERS */
    unsigned depth;    /* of containers in containers; 0: PRB_REPR_DEPTH */
    unsigned items;    /* of one container; 0: PRB_REPR_ITEMS */
    /* PRB_MASK for texts whose key or attribute has a secret's name, and for what looks secret */
    bool hide_secrets;
};
#define PRB_REPR_CHARACTERS 4096
#define PRB_REPR_DEPTH 64   /* as deep as every Python's parser reads back */
#define PRB_REPR_ITEMS 4096 /* more than that many characters can hold */

/*
 * Append what repr(object) would print, as far as it is known without running code.  Built-in
 * scalars and containers read back with ast.literal_eval unless cut; a text that is cut, wherever,
 * ends in "…" and no other does.  Ints of more than 9,247 digits are shown by their leading digits
 * in hexadecimal.  A cycle is "[...]" as Python prints it; instances are "<module.Class attr=…,
 * attr=… at 0x…>", dataclasses "Class(field=…)", subclasses of builtins "Class(value)", cells their
 * content, tensors "torch.Tensor(shape=(2, 3), dtype=float32, device=cpu)".  Unreadable parts are
 * marked "<unreadable>" in place; fails only when the object itself cannot be read.
 */
bool prb_object_repr(struct prb_objects *objects, prb_addr object,
                     const struct prb_repr_limits *limits, struct prb_buf *out,
                     struct prb_error *err);
/* The same of a variable: a text by a secret's name is PRB_MASK where limits hide secrets. */
bool prb_variable_repr(struct prb_objects *objects, const char *name, prb_addr object,
                       const struct prb_repr_limits *limits, struct prb_buf *out,
                       struct prb_error *err);

#endif
