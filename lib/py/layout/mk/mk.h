/*
 * What the parts of mk share: the names of fields and traits as enums, and the macros that record a
 * value. Includes the interpreter's own headers; only mk.c includes this.
 */
#ifndef PRB_LAYOUT_MK_H
#define PRB_LAYOUT_MK_H

#include <Python.h>
#include <datetime.h>
#include <frameobject.h>
#include <opcode.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <structmember.h>
#if PY_MINOR_VERSION == 7
#include "internal/pystate.h"
#elif PY_MINOR_VERSION == 8
#include "internal/pycore_pystate.h"
#elif PY_MINOR_VERSION >= 9
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#if PY_MINOR_VERSION >= 10
#include "internal/pycore_moduleobject.h"
#endif
#if PY_MINOR_VERSION >= 11
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_frame.h"
#include "internal/pycore_object.h"
#include "internal/pycore_pystate.h"
#endif
#if PY_MINOR_VERSION >= 13
#include "internal/pycore_descrobject.h"
#endif
#if PY_MINOR_VERSION >= 14
#include "internal/pycore_interpframe.h"
#include "internal/pycore_stackref.h"
#endif

#ifdef Py_GIL_DISABLED
#define FREE_THREADED 1
#else
#define FREE_THREADED 0
#endif

enum field {
#define FIELD(struct_, field, width) F_##struct_##_##field,
#include "../fields.def"
#undef FIELD
    FIELD_COUNT
};
enum trait {
#define TRAIT(name, values) T_##name,
#define NUMBER(name)
#include "../traits.def"
#undef TRAIT
#undef NUMBER
    TRAIT_COUNT
};
enum number {
#define TRAIT(name, values)
#define NUMBER(name) N_##name,
#include "../traits.def"
#undef TRAIT
#undef NUMBER
    NUMBER_COUNT
};

/* width 0: not to be compared with fields.def. */
void mk_set(enum field field, long offset, size_t width);
void mk_number(enum number number, long value);
void mk_trait(enum trait trait, const char *value);
bool mk_has(enum field field);

/* A member of a struct in the headers; one member of an embedded struct is written with its dots.
 */
#define AT(struct_, field, type, member)                                                           \
    mk_set(F_##struct_##_##field, (long)offsetof(type, member), sizeof(((type *)0)->member))
/* A size, or a place that is not a member. */
#define PLACE(struct_, field, offset) mk_set(F_##struct_##_##field, (long)(offset), 0)
#define NUMBER_IS(name, value) mk_number(N_##name, (long)(value))
#define TRAIT_IS(name, value) mk_trait(T_##name, #value)

#endif
