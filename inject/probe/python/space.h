/*
 * Where code of ours runs: namespaces of modules that no import finds.
 *
 * All files of a group (sources.h) have one name from C, the object `probe`:
 *   run(source, file, namespace)   execute a source, statement by statement
 *   sources    dict: name -> source (bytes), those of the group
 *   agent      the module of python/agent.py
 *   kept       dict that outlives a detach: what CPython may use without a reference
 *   codes      dict: name of an enum prb_code -> number
 *   text_max   room for a result, bytes
 * and what the group's C adds.  Its first file may add what the other files are to find there.
 */
#ifndef PRB_PROBE_PYTHON_SPACE_H
#define PRB_PROBE_PYTHON_SPACE_H

#include "inject/probe/python/api.h"

/* A namespace for the first file of a group, and the dict of its `probe`; new references.  With the
 * GIL.  NULL: an exception is set, or err where the agent cannot be loaded. */
struct prb_py *prb_py_space(const struct prb_py_api *py, const char *group,
                            struct prb_py **probe_out, struct prb_error *err);
/* value, which is taken, into a dict.  False: it is NULL, or there is no memory. */
bool prb_py_give(const struct prb_py_api *py, struct prb_py *dict, const char *name,
                 struct prb_py *value);
struct prb_py *prb_py_text(const struct prb_py_api *py, const char *text);

#endif
