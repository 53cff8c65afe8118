/*
 * Names of tables that Python code makes (ring/ring.h): python.NAME, which no built-in table has.
 * The probe checks this before it makes one, the reader before it shows one.
 */
#ifndef PRB_TABLE_RECORDED_NAMES_H
#define PRB_TABLE_RECORDED_NAMES_H

#include "base/error.h"

/* Whether name, NUL-terminated, is free; case is ignored.  USAGE: a built-in table has it. */
bool prb_recorded_name_is_free(const char *name, struct prb_error *err);

#endif
