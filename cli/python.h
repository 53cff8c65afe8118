/* Which Python this machine's user has. */
#ifndef PRB_CLI_PYTHON_H
#define PRB_CLI_PYTHON_H

#include <limits.h>

#include "cli/command.h"

/* The pip package's command sets it to the Python that it runs in. */
#define PRB_PYTHON_VARIABLE "PROBING_PYTHON"

/* That of PROBING_PYTHON, else the first python3 or python of PATH; NOT_FOUND. */
bool prb_find_python(char out[PATH_MAX], struct prb_error *err);

#endif
