/*
 * Our Python, kept as bytes: NAME.py of this folder and ../debug/debug_NAME.py.  The probe
 * executes them in the target; the side outside has them compiled (inject/bytecode/bytecode.h).
 * Both agents are executed by C, the others by them when they are first needed. To add one: its
 * NAME in sources.c or in ../debug/agent/local.mk.
 */
#ifndef PRB_PROBE_PYTHON_SOURCES_H
#define PRB_PROBE_PYTHON_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

struct prb_py_source {
    const char *name; /* in PARTS of its agent */
    const char *file; /* co_filename */
    bool debug;       /* of the debugger's agent */
    const char *text; /* UTF-8, ends with 0 */
    size_t len;       /* bytes, without the 0 */
};
/* The last one has no name. */
extern const struct prb_py_source prb_py_sources[];
/* By file; NULL: none of ours. */
const struct prb_py_source *prb_py_source(const char *file);

/* Ends each piece of a text that is executed by itself: between top-level statements, and nowhere
 * else in our sources. */
#define PRB_PY_PIECE_END "\n\n\n"

#endif
