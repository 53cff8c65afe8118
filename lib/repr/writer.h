/*
 * Shared by the files of this folder: a text under way, and what writes the kinds of objects.
 */
#ifndef PRB_REPR_WRITER_H
#define PRB_REPR_WRITER_H

#include "py/object/reader.h"
#include "repr/repr.h"

#define PRB_CACHED_TEXTS_MAX                                                                       \
    (4 << 20) /* bytes of texts cached for the next time they are asked for */

/* The text of an object under some limits, as it was written in this reading. */
struct prb_cached_text {
    prb_addr object; /* 0: free */
    struct prb_repr_limits limits;
    const char *text; /* in the arena */
    size_t len;
};

#define PRB_UNREADABLE "<unreadable>"
#define PRB_CUT "\xe2\x80\xa6"

/* A text under way. */
struct prb_repr {
    struct prb_objects *objects;
    struct prb_text text;
    unsigned depth_max, items_max;
    unsigned depth;     /* containers open */
    unsigned instances; /* of them, those that show attributes */
    bool hide_secrets;
    prb_addr open[PRB_REPR_DEPTH_MAX];
};

/* The text of any object, PRB_UNREADABLE when there is none at addr. */
void prb_repr_value(struct prb_repr *repr, prb_addr object);
/* The same of what has a name: an attribute's, a field's. */
void prb_repr_named_value(struct prb_repr *repr, const char *name, prb_addr object);
/* Open a container; false when it is open already (writes again) or too deep: then it is not to be
 * left. */
bool prb_repr_enter(struct prb_repr *repr, prb_addr object, const char *again);
void prb_repr_leave(struct prb_repr *repr);
/* Before another item; false when there is no room for it. */
bool prb_repr_item(struct prb_repr *repr, size_t *count);
/* After a walk: mark what it could not read. */
void prb_repr_walked(struct prb_repr *repr, bool good, size_t *count);
/* "<module.Class", without the module for builtins */
void prb_repr_begin(struct prb_repr *repr, struct prb_object_type *type);
/* "NAME(" */
void prb_repr_head(struct prb_repr *repr, const char *name);
/* "<module.Class object at 0x…>" */
void prb_repr_short(struct prb_repr *repr, prb_addr object, struct prb_object_type *type);
/* What a subclass of a builtin calls itself. */
const char *prb_type_label(struct prb_objects *objects, struct prb_object_type *type);

typedef void prb_repr_fn(struct prb_repr *repr, prb_addr object, struct prb_object_type *type);
/* container.c */
prb_repr_fn prb_repr_list, prb_repr_tuple, prb_repr_dict, prb_repr_set, prb_repr_deque,
    prb_repr_namedtuple;
/* instance.c */
prb_repr_fn prb_repr_instance, prb_repr_namespace, prb_repr_dataclass, prb_repr_enum,
    prb_repr_exception;
/* named.c: what is shown by its name */
prb_repr_fn prb_repr_module, prb_repr_function, prb_repr_builtin, prb_repr_method, prb_repr_type,
    prb_repr_cell, prb_repr_generator, prb_repr_code, prb_repr_range, prb_repr_slice,
    prb_repr_proxy, prb_repr_weakref;
/* dates.c */
prb_repr_fn prb_repr_date, prb_repr_time, prb_repr_datetime, prb_repr_timedelta, prb_repr_timezone;
/* numbers.c */
prb_repr_fn prb_repr_decimal, prb_repr_python_decimal, prb_repr_array_array, prb_repr_ctypes_simple;
/* locks.c */
prb_repr_fn prb_repr_lock, prb_repr_rlock, prb_repr_event, prb_repr_semaphore, prb_repr_condition,
    prb_repr_thread, prb_repr_authkey;
/* standard.c: the standard library's others */
prb_repr_fn prb_repr_memoryview, prb_repr_dict_view, prb_repr_uuid, prb_repr_fraction,
    prb_repr_path;
bool prb_is_ctypes_simple(const struct prb_object_type *type);
/* torch.c */
prb_repr_fn prb_repr_torch_module, prb_repr_torch_optimizer;
/* array.c */
prb_repr_fn prb_repr_array, prb_repr_array_scalar, prb_repr_torch_constant, prb_repr_numpy_dtype;
bool prb_is_numpy_dtype(struct prb_objects *objects, struct prb_object_type *type);
bool prb_is_array_scalar(struct prb_objects *objects, struct prb_object_type *type);

/* Several attributes of one instance (or items of a dict with str keys) in one walk. */
struct prb_pick {
    struct prb_objects *objects;
    const char *const *names; /* NULL-terminated, at most 32 */
    prb_addr *values;         /* 0 when there is none */
    unsigned left;
};
bool prb_pick_attributes(struct prb_objects *objects, prb_addr object, struct prb_object_type *type,
                         const char *const *names, prb_addr *values);
bool prb_pick_items(struct prb_objects *objects, prb_addr dict, const char *const *names,
                    prb_addr *values);

#endif
