/* What the parts of `probing cluster` share. */
#ifndef PRB_CLI_CLUSTER_CLUSTER_H
#define PRB_CLI_CLUSTER_CLUSTER_H

#include "cli/command.h"
#include "fleet/cluster.h"

/* The options of all of them, as the command's table has them. */
enum prb_cluster_option {
    PRB_CLUSTER_LISTEN,
    PRB_CLUSTER_STORE,
    PRB_CLUSTER_PRINT,
    PRB_CLUSTER_ALLOW,
    PRB_CLUSTER_ALL_USERS,
    PRB_CLUSTER_LINGER,
    PRB_CLUSTER_INSECURE,
    PRB_CLUSTER_HOSTS,
    PRB_CLUSTER_HISTORY,
    PRB_CLUSTER_EVERY,
    PRB_CLUSTER_METRICS,
    PRB_CLUSTER_ONCE,
    PRB_CLUSTER_FORMAT,
    PRB_CLUSTER_ALL,
    PRB_CLUSTER_PULL,
};

bool prb_cli_cluster_up(const struct prb_run *run, struct prb_error *err);
bool prb_cli_cluster_down(const struct prb_run *run, struct prb_error *err);

bool prb_cli_cluster_attach(const struct prb_run *run, struct prb_error *err);
bool prb_cli_cluster_detach(const struct prb_run *run, struct prb_error *err);
/* server.c: as prb_cluster_attach and prb_cluster_detach, but for where this user's server runs on the host: that is the agent
 * then, and goes on as a server afterwards. */
bool prb_agent_attach(const struct prb_cluster_agent_options *options,
                      struct prb_cluster_attached *out, struct prb_error *err);
bool prb_agent_detach(bool *was_running, struct prb_error *err);
/* jobs, nodes, ranks. */
bool prb_cli_cluster_hosts(const struct prb_run *run, struct prb_error *err);
/* -t @JOB crash list, by its other name. */
bool prb_cli_cluster_crashes(const struct prb_run *run, struct prb_error *err);
bool prb_cli_cluster_record(const struct prb_run *run, struct prb_error *err);
/* The ranks of this host, a line for each job. */
bool prb_cli_cluster_print_own(struct prb_error *err);

#endif
