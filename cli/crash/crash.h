/* probing crash: what its parts share. */
#ifndef PRB_CLI_CRASH_H
#define PRB_CLI_CRASH_H

#include "cli/command.h"

PRB_DEFINE_AUTO(prb_crash_files, struct prb_crash_files, prb_crash_files_free)

bool prb_crash_list(const struct prb_crash_files *files, bool all, struct prb_error *err);
/* The account of one dump: what, whose, the exceptions, the stacks. */
bool prb_crash_show(struct prb_target *target, const char *path, FILE *out, struct prb_error *err);

#endif
