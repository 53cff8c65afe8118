/*
 * What an object consists of: elements, then attributes, for whoever unfolds it step by step.
 * Runs no code of the target; an object that changes meanwhile gives parts of both moments.
 */
#ifndef PRB_REPR_PARTS_H
#define PRB_REPR_PARTS_H

#include "py/object/object.h"

#define PRB_PART_KEY 200        /* characters of a key's text */
#define PRB_VALUE_DIMS 4        /* of an array of one element whose value is shown */
#define PRB_PARTS_NAMED_MAX 100 /* attributes that are counted */

/* A part under way; strings are valid during the call. */
struct prb_raw_part {
    const char *name;
    const char *access; /* NULL: no expression leads there */
    prb_addr object;    /* 0: text is all there is */
    const char *text;
};
typedef bool prb_raw_part_fn(void *context, const struct prb_raw_part *part);

/* How many elements an object has, and attributes (no more than PRB_PARTS_NAMED_MAX are counted).
 */
bool prb_object_counts(struct prb_objects *objects, prb_addr object, uint64_t *indexed_out,
                       uint64_t *named_out, struct prb_error *err);
/* Elements start to start + count of a list, tuple, deque, set or dict; none of other objects.
 * Sets, dicts and deques are walked from their beginning, PRB_DICT_MAX elements at the most. */
bool prb_object_elements(struct prb_objects *objects, prb_addr object, uint64_t start,
                         uint64_t count, prb_raw_part_fn *each, void *context,
                         struct prb_error *err);
/* Attributes of the object itself; of modules and classes their names; what cells, methods,
 * exceptions and arrays hold. */
bool prb_object_attributes(struct prb_objects *objects, prb_addr object, prb_raw_part_fn *each,
                           void *context, struct prb_error *err);
/* Its text of at most limit characters: as prb_object_repr, arrays shorter ("Tensor float32 [8,
 * 128] cuda:0"). */
bool prb_object_summary(struct prb_objects *objects, prb_addr object, size_t limit,
                        struct prb_buf *out, struct prb_error *err);

/* ---- array.c ---- */

/* Items of the first dimension, as texts. */
bool prb_array_elements(struct prb_objects *objects, prb_addr object, uint64_t start,
                        uint64_t count, prb_raw_part_fn *each, void *context,
                        struct prb_error *err);
/* As the library's own: of torch in elements, of numpy in bytes. */
void prb_array_stride(const struct prb_tensor *array, struct prb_buf *out);
/* Append " = 2.5", where the element of an array without dimensions can be read. */
void prb_array_value(struct prb_objects *objects, const struct prb_tensor *array,
                     struct prb_buf *out);

#endif
