/*
 * Reading code objects, for the cache of them (code.c).  What is read lives in the reader's arena;
 * errors are those of the reads, and CORRUPT for what no code object can hold.
 */
#ifndef PRB_PY_CODE_READ_H
#define PRB_PY_CODE_READ_H

#include "base/buf.h"
#include "py/code.h"
#include "py/object/object.h"

struct prb_code_reader {
    struct prb_py *py;
    struct prb_objects *objects; /* for names */
    struct prb_arena *arena;     /* for what is saved */
};

/* The identity of a code object, to notice another one at the same address; compared byte by byte,
 * so without padding. */
struct prb_code_identity {
    uint64_t name, qualname, filename, linetable;
    uint32_t firstlineno, flags, argcount, posonlyargcount, kwonlyargcount, nlocals;
};

#define PRB_CODE_NAME_BYTES 128 /* of the name object, to distinguish it from another */

struct prb_code_reading {
    struct prb_code_object code; /* without variables */
    struct prb_code_identity identity;
    uint8_t name_bytes[PRB_CODE_NAME_BYTES];
    size_t name_bytes_len;
};

/* out is zeroed by the caller; on failure it may be filled in part. */
bool prb_code_read(const struct prb_code_reader *reader, prb_addr addr,
                   struct prb_code_reading *out, struct prb_error *err);
/*
 * Before many are read, so that they come in a few calls: of each first its head, then (of all
 * whose heads were announced) what the head points to.
 */
void prb_code_announce(const struct prb_code_reader *reader, prb_addr addr);
void prb_code_announce_texts(const struct prb_code_reader *reader, prb_addr addr);
/* variables, variable_kinds, variable_count of a code object that was read; 0 of them on failure.
 */
bool prb_code_read_variables(const struct prb_code_reader *reader, struct prb_code_object *code,
                             struct prb_error *err);
/* A str in the arena. */
const char *prb_code_text(const struct prb_code_reader *reader, prb_addr str,
                          struct prb_error *err);

/* Whether the same code object is still there: read again, or as view has it. */
bool prb_code_is_same(struct prb_py *py, const struct prb_code_reading *read);
bool prb_code_is_same_in(struct prb_py *py, struct prb_view *view,
                         const struct prb_code_reading *read);
/* Before view is refreshed: it is to bring in what prb_code_is_same_in compares. */
void prb_code_reading_prefetch(struct prb_py *py, struct prb_view *view,
                               const struct prb_code_reading *read);

#endif
