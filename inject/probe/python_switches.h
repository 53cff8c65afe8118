/* What the program's Python was started with, as far as the probe has to obey it. */
#ifndef PRB_PROBE_PYTHON_SWITCHES_H
#define PRB_PROBE_PYTHON_SWITCHES_H

#include <stdbool.h>

/* Whether CPython's own switches forbid to run code from outside; why_out: which. */
bool prb_remote_debug_is_off(const char **why_out);
/* Whether the environment must not lead this process: it has rights that its caller does not have
 * (AT_SECURE), or its Python was started with -I or -E.  Where LD_PRELOAD loaded this library, the
 * environment leads it already. */
bool prb_environment_is_shut(bool preloaded);

#endif
