/* What the parts of `probing cluster` share. */
#ifndef PRB_CLI_CLUSTER_CLUSTER_H
#define PRB_CLI_CLUSTER_CLUSTER_H

#include "cli/command.h"
#include "fleet/cluster.h"

/* The options of all of them, as the command's table has them. */
enum prb_cluster_option { PRB_CLUSTER_LISTEN, PRB_CLUSTER_STORE, PRB_CLUSTER_PRINT };

bool prb_cli_cluster_up(const struct prb_run *run, struct prb_error *err);
bool prb_cli_cluster_down(const struct prb_run *run, struct prb_error *err);

#endif
