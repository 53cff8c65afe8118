/* Files that are installed beside the program for other programs: gdb, editors. */
#ifndef PRB_CLI_SHARE_H
#define PRB_CLI_SHARE_H

#include <limits.h>

#include "cli/command.h"

/* The absolute path of the first name (of names, ends with NULL) that is there: beside a package's program, where `make
 * install` put it, or in a build folder after `make python-native`.  NOT_FOUND. */
bool prb_share_find(const char *const *names, char out[PATH_MAX], struct prb_error *err);

/* Become the program, found on PATH; comes back on failure alone. */
bool prb_share_become(const struct prb_run *run, const char **words, const char *remedy,
                      struct prb_error *err);

#endif
