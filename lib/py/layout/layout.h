/*
 * Layouts: where CPython has things, as data.  One file 3.N.def for each minor version, printed by
 * mk/mk.c from the headers of an interpreter, and patches.def for the releases that differ; this is
 * the only place that knows versions.
 *
 * To add a version:
 *  1. mk-layouts.sh on its headers; a member that moved or was renamed is a compile error in mk/:
 *     give it a line for this version there.  New meanings (pycore_frame.h, pycore_dict.h,
 *     pycore_stackref.h): mk/traits.h.
 *  2. 3.N.def into LAYOUTS (local.mk) and the count in tests/layout/test_regenerate.py.
 *  3. tests/layout and tests/live with that interpreter: it compares its own memory and its table.
 *  4. Its later releases: mk-patches.py with a clone that has their tags.
 */
#ifndef PRB_PY_LAYOUT_LAYOUT_H
#define PRB_PY_LAYOUT_LAYOUT_H

#include "mem/mem.h"

enum prb_field {
#define FIELD(struct_, field, width) PRB_F_##struct_##_##field,
#include "py/layout/fields.def"
#undef FIELD
    PRB_FIELD_COUNT
};

/* PRB_TRAIT_line_table and, of enum prb_line_table, PRB_line_table_LINES … */
#define NUMBER(name)
#define VALUE(trait, value) PRB_##trait##_##value,
#define TRAIT(name, values) enum prb_##name{values};
#include "py/layout/traits.def"
#undef TRAIT
#undef VALUE

enum prb_trait {
#define VALUE(trait, value)
#define TRAIT(name, values) PRB_TRAIT_##name,
#include "py/layout/traits.def"
#undef TRAIT
#undef NUMBER
    PRB_TRAIT_COUNT
};

enum prb_number {
#define TRAIT(name, values)
#define NUMBER(name) PRB_N_##name,
#include "py/layout/traits.def"
#undef TRAIT
#undef NUMBER
#undef VALUE
    PRB_NUMBER_COUNT
};

#define PRB_ABSENT INT32_MIN /* this version has no such field */
#define PRB_NONE INT16_MIN   /* … no such number */

struct prb_layout {
    const char *name; /* "3.11", "3.14t" */
    uint8_t major, minor;
    uint8_t measured_patch; /* the patch release the numbers were printed from */
    bool free_threaded;
    int32_t offset[PRB_FIELD_COUNT]; /* bytes, or PRB_ABSENT */
    uint8_t trait[PRB_TRAIT_COUNT];
    int16_t number[PRB_NUMBER_COUNT]; /* or PRB_NONE */
};

/* Offset of a field, or PRB_ABSENT. */
#define PRB_OFF(layout, struct_, field) ((layout)->offset[PRB_F_##struct_##_##field])
#define PRB_HAS(layout, struct_, field) (PRB_OFF(layout, struct_, field) != PRB_ABSENT)
#define PRB_IS(layout, name_, value) ((layout)->trait[PRB_TRAIT_##name_] == PRB_##name_##_##value)
#define PRB_NUM(layout, name_) ((layout)->number[PRB_N_##name_])

/* "thread.frame" and its width in bytes. */
const char *prb_field_name(enum prb_field field);
unsigned prb_field_width(enum prb_field field);

/*
 * The layout of a version: hexversion as Py_Version and sys.hexversion have it (0x030b07f0).  Patch
 * releases that moved a field have layouts of their own.  UNSUPPORTED (says which versions are
 * known) when there is none.
 */
bool prb_layout_find(uint32_t hexversion, bool free_threaded, struct prb_layout *out,
                     struct prb_error *err);

/*
 * From 3.13 the interpreter publishes a table of its own offsets at the start of _PyRuntime
 * (pycore_debug_offsets.h). Read it: version and flag from its head.  False with NOT_FOUND when the
 * cookie is not there.
 */
bool prb_debug_offsets_head(struct prb_mem *mem, prb_addr runtime, uint32_t *hexversion_out,
                            bool *free_threaded_out, struct prb_error *err);
/* Replace the layout's offsets by the target's, each bounded first; *agreed, *differed, *refused
 * count them. */
bool prb_debug_offsets_apply(struct prb_mem *mem, prb_addr runtime, struct prb_layout *layout,
                             unsigned *agreed, unsigned *differed, unsigned *refused,
                             struct prb_error *err);

/*
 * PEP 768: where an interpreter takes a script from a debugger; offsets in PyThreadState, the last
 * two in its part at `support`, `enabled` in PyInterpreterState.  The last words of the table, from
 * 3.14 on (pycore_debug_offsets.h, struct _debugger_support).  UNSUPPORTED where there is none.
 */
struct prb_debugger_support {
    uint64_t eval_breaker, support, enabled, pending, script_path, script_path_size;
};
#define PRB_PLEASE_STOP_BIT 5 /* of the eval breaker: _PY_EVAL_PLEASE_STOP_BIT, pycore_ceval.h */
bool prb_debugger_support(struct prb_mem *mem, prb_addr runtime, const struct prb_layout *layout,
                          struct prb_debugger_support *out, struct prb_error *err);

/* The names of all layouts: i from 0 until NULL. */
const char *prb_layout_name(size_t i);

#endif
