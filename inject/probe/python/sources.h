/*
 * Our Python, saved as bytes.  The probe executes it in the target; the side outside has it compiled
 * (inject/bytecode/bytecode.h).  C executes a group's first file, the others are modules that are
 * loaded when they are first needed (space.h).  To add one: to probe_python_files, in the local.mk
 * of its folder.
 */
#ifndef PRB_PROBE_PYTHON_SOURCES_H
#define PRB_PROBE_PYTHON_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

struct prb_py_source {
    const char *name;
    const char *file;  /* co_filename: "<probing GROUP NAME>" */
    const char *group; /* the part whose it is, "debug"; "": the ground's */
    const char *text;  /* UTF-8, ends with 0 */
    size_t len;        /* bytes, without the 0 */
};
/* The last one has no name. */
extern const struct prb_py_source prb_py_sources[];
/* By file; NULL: none of ours. */
const struct prb_py_source *prb_py_source(const char *file);

/* Ends each piece of a text that is executed by itself: between top-level statements, and nowhere
 * else in our sources. */
#define PRB_PY_PIECE_END "\n\n\n"

#endif
