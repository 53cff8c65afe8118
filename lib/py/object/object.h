/*
 * Objects of the target, read without running code: their types, their text, and the walk into
 * containers.
 *
 * Bounded by the named limits below.  Reads go through a struct prb_objects, which caches types and
 * pages of one reading of the target; make a new one (or clear it) for each reading.
 */
#ifndef PRB_PY_OBJECT_H
#define PRB_PY_OBJECT_H

#include "base/buf.h"
#include "py/py.h"

struct prb_objects;

struct prb_objects *prb_objects_new(struct prb_py *py, struct prb_error *err);
void prb_objects_free(struct prb_objects *objects);
PRB_DEFINE_AUTO_PTR(prb_objects, struct prb_objects, prb_objects_free)
/* Forget cached pages and types: the target went on. */
void prb_objects_clear(struct prb_objects *objects);
/* From now on nearly all objects will be looked at: fetch whole pages.  Forgets those it has. */
void prb_objects_expect_all(struct prb_objects *objects);
struct prb_py *prb_objects_py(struct prb_objects *objects);

/* What an object is, by its type's flags and name. */
enum prb_object_kind {
    PRB_OBJ_OTHER, /* an instance of some class */
    PRB_OBJ_NONE,
    PRB_OBJ_BOOL,
    PRB_OBJ_INT,
    PRB_OBJ_FLOAT,
    PRB_OBJ_COMPLEX,
    PRB_OBJ_STR,
    PRB_OBJ_BYTES,
    PRB_OBJ_BYTEARRAY,
    PRB_OBJ_TUPLE,
    PRB_OBJ_LIST,
    PRB_OBJ_DICT,
    PRB_OBJ_SET,
    PRB_OBJ_FROZENSET,
    PRB_OBJ_DEQUE,
    PRB_OBJ_RANGE,
    PRB_OBJ_SLICE,
    PRB_OBJ_EXCEPTION,
    PRB_OBJ_MODULE,
    PRB_OBJ_FUNCTION,
    PRB_OBJ_BUILTIN,
    PRB_OBJ_METHOD,
    PRB_OBJ_TYPE,
    PRB_OBJ_CELL,
    PRB_OBJ_GENERATOR,
    PRB_OBJ_COROUTINE,
    PRB_OBJ_ASYNC_GENERATOR,
    PRB_OBJ_CODE,
    PRB_OBJ_NDARRAY,
    PRB_OBJ_TENSOR,
};

/* PRB_OBJ_OTHER with err set when there is no object. */
enum prb_object_kind prb_object_kind(struct prb_objects *objects, prb_addr object,
                                     struct prb_error *err);
/* "module.qualname" of its type ("int", "torch.Tensor", "__main__.Model"), appended to out. */
bool prb_object_type_name(struct prb_objects *objects, prb_addr object, struct prb_buf *out,
                          struct prb_error *err);

/* The text of a str object in UTF-8 (lone surrogates as \udcxx), at most max characters. */
bool prb_object_str(struct prb_objects *objects, prb_addr object, size_t max, struct prb_buf *out,
                    struct prb_error *err);
/* The value of an int that fits; CORRUPT else. */
bool prb_object_int(struct prb_objects *objects, prb_addr object, int64_t *out,
                    struct prb_error *err);

/* Items of a dict in order: each(context, key, value); stops early when it returns false.  At most
 * PRB_DICT_MAX. */
#define PRB_DICT_MAX 1000000
typedef bool prb_item_fn(void *context, prb_addr key, prb_addr value);
bool prb_dict_each(struct prb_objects *objects, prb_addr dict, prb_item_fn *each, void *context,
                   struct prb_error *err);
/* dict[name] for a str key; *out 0 when it is not there. */
bool prb_dict_get(struct prb_objects *objects, prb_addr dict, const char *name, prb_addr *out,
                  struct prb_error *err);
/* Items of a list, tuple, set, frozenset or deque: key is 0. */
bool prb_sequence_each(struct prb_objects *objects, prb_addr sequence, prb_item_fn *each,
                       void *context, struct prb_error *err);
/* Attributes in the instance itself (__slots__, then __dict__ or inline values); name is UTF-8,
 * valid during the call. */
typedef bool prb_attribute_fn(void *context, const char *name, prb_addr value);
bool prb_attributes_each(struct prb_objects *objects, prb_addr object, prb_attribute_fn *each,
                         void *context, struct prb_error *err);
/* One attribute of the instance itself; *out 0 when it has none of that name. */
bool prb_attribute_get(struct prb_objects *objects, prb_addr object, const char *name,
                       prb_addr *out, struct prb_error *err);
/* The attributes of many objects will be asked for: bring in where they are, in a few calls. */
void prb_attributes_announce(struct prb_objects *objects, prb_addr object);
/* sys.modules[name].__dict__[attribute]; *out 0 when there is none. */
bool prb_module_get(struct prb_objects *objects, prb_addr interpreter, const char *module,
                    const char *attribute, prb_addr *out, struct prb_error *err);

#endif
