/* The table of sources.h; sources.inc is made by embed.sh of the files in probe_python_files. */
#include "inject/probe/python/sources.h"

#include <string.h>

#include "inject/probe/python/sources.inc"

const struct prb_py_source *prb_py_source(const char *file)
{
    for (const struct prb_py_source *one = prb_py_sources; one->name; one++)
        if (strcmp(one->file, file) == 0)
            return one;
    return NULL;
}
