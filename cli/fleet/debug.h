/* Debugging a rank that an agent on another host lends. */
#ifndef PRB_CLI_FLEET_DEBUG_H
#define PRB_CLI_FLEET_DEBUG_H

#include "cli/command.h"
#include "dap/dap.h"

/* The rank of the address, when a bus is configured; *here false: the rank is a process of this
 * host, which is debugged as any other.  options->address NULL: standard input and output. */
bool prb_job_debug(const struct prb_run *run, const struct prb_dap_listen_options *options,
                   bool *here, struct prb_error *err);

#endif
