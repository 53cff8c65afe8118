/*
 * Layouts: where CPython keeps things, as data.  One file 3.N.def for each minor version, printed by mk.c from the
 * headers of an interpreter; this is the only place that knows versions.
 *
 * To add a version: run mk on its headers (`make layouts`), read what it could not find, add 3.N.def and its name to
 * layouts.def, give its debug offsets table in debug_offsets.def, and run the live tests with that interpreter.
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

/* PRB_TRAIT_line_table and its values PRB_line_table_LINES … */
enum prb_trait {
#define TRAIT(name, ...) PRB_TRAIT_##name,
#define NUMBER(name)
#include "py/layout/traits.def"
#undef TRAIT
#undef NUMBER
    PRB_TRAIT_COUNT
};

enum prb_number {
#define TRAIT(name, ...)
#define NUMBER(name) PRB_N_##name,
#include "py/layout/traits.def"
#undef TRAIT
#undef NUMBER
    PRB_NUMBER_COUNT
};

enum prb_frame_chain { PRB_frame_chain_FRAME_OBJECTS, PRB_frame_chain_CFRAME, PRB_frame_chain_CURRENT_FRAME };
enum prb_entry { PRB_entry_EVERY_FRAME, PRB_entry_IS_ENTRY, PRB_entry_SHIM };
enum prb_anchor { PRB_anchor_FRAME_POINTER, PRB_anchor_CFRAMES, PRB_anchor_SHIM_ADDRESS };
enum prb_line_table { PRB_line_table_LNOTAB_UNSIGNED, PRB_line_table_LNOTAB, PRB_line_table_LINES, PRB_line_table_LOCATIONS };
enum prb_instr { PRB_instr_LASTI_BYTES, PRB_instr_LASTI_UNITS, PRB_instr_PREV_INSTR, PRB_instr_INSTR_PTR };
enum prb_variables { PRB_variables_NAME_TUPLES, PRB_variables_LOCALSPLUS };
enum prb_reference { PRB_reference_POINTER, PRB_reference_TAGGED };
enum prb_int_size { PRB_int_size_SIGNED_SIZE, PRB_int_size_TAG };
enum prb_dict_keys { PRB_dict_keys_HASH_TABLE, PRB_dict_keys_INDEX_BY_SIZE, PRB_dict_keys_INDEX_BY_LOG2 };
enum prb_instance { PRB_instance_DICT_OFFSET, PRB_instance_VALUES_AND_DICT, PRB_instance_DICT_OR_VALUES, PRB_instance_INLINE_VALUES };
enum prb_gil { PRB_gil_STATIC, PRB_gil_RUNTIME, PRB_gil_INTERPRETER, PRB_gil_NONE };
enum prb_generator { PRB_generator_FRAME_OBJECT, PRB_generator_EMBEDDED };

#define PRB_ABSENT INT32_MIN

struct prb_layout {
    const char *name;       /* "3.11", "3.14t" */
    uint8_t major, minor;
    uint8_t measured_patch; /* the patch release the numbers were printed from */
    bool free_threaded;
    int32_t offset[PRB_FIELD_COUNT]; /* bytes, or PRB_ABSENT */
    uint8_t trait[PRB_TRAIT_COUNT];
    int8_t number[PRB_NUMBER_COUNT]; /* -1: has no such thing */
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
 * The layout of a version: hexversion as Py_Version and sys.hexversion have it (0x030b07f0).  Patch releases that moved
 * a field are told apart.  UNSUPPORTED (says which versions are known) when there is none.
 */
bool prb_layout_find(uint32_t hexversion, bool free_threaded, struct prb_layout *out, struct prb_error *err);

/*
 * From 3.13 the interpreter publishes a table of its own offsets at the start of _PyRuntime (pycore_debug_offsets.h).
 * Read it: version and flag from its head.  False with NOT_FOUND when the cookie is not there.
 */
bool prb_debug_offsets_head(struct prb_mem *mem, prb_addr runtime, uint32_t *hexversion_out, bool *free_threaded_out,
                            struct prb_error *err);
/* Replace the layout's offsets by the target's, each bounded first; *agreed, *differed, *refused count them. */
bool prb_debug_offsets_apply(struct prb_mem *mem, prb_addr runtime, struct prb_layout *layout, unsigned *agreed,
                             unsigned *differed, unsigned *refused, struct prb_error *err);

/* All layouts we have, for tests and `--version -v`: i from 0 until NULL. */
const char *prb_layout_name(size_t i);

#endif
