/* probing cluster: the bus that the hosts of a job meet at, and a host's agent on it. */
#include "cli/cluster/cluster.h"

#include <string.h>

static const struct prb_option options[] = {
    [PRB_CLUSTER_LISTEN] = {0, "listen", "ADDRESS",
                            "up: only there, HOST:PORT; port 0: any (default: all addresses, 4222)",
                            NULL},
    [PRB_CLUSTER_STORE] = {0, "store", "SIZE",
                           "up: the most that the server keeps on disk (default 1G)", NULL},
    [PRB_CLUSTER_PRINT] = {0, "print", NULL,
                           "up: only write the keys, and print what an own NATS server needs",
                           NULL},
    {0},
};

static const struct {
    const char *name;
    bool (*run)(const struct prb_run *run, struct prb_error *err);
} words[] = {
    {"up", prb_cli_cluster_up},
    {"down", prb_cli_cluster_down},
};

static bool run_cluster(const struct prb_run *run, struct prb_error *err)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(run->arguments[0], words[i].name) == 0)
            return words[i].run(run, err);
    return prb_usage(run, err, "cluster: one of %s, not \"%s\"", run->command->words,
                     run->arguments[0]);
}

const struct prb_command prb_command_cluster = {
    .name = "cluster",
    .aliases = "",
    .summary = "let the hosts of a job meet",
    .arguments = "up|down",
    .words = "up down",
    .arguments_min = 1,
    .arguments_max = 1,
    .target = PRB_USES_NO_TARGET,
    .description =
        "One host needs nothing of this. `up` starts a NATS server with keys and TLS of its own, "
        "keeps it running, and prints the command that joins a host, alone on the last line. It "
        "writes the folder ~/.config/probing/bus with four files: agent is for the hosts that "
        "join, look, control and eval for those who ask; each holds a secret key. Once more, it "
        "keeps the keys and starts what has ended. `down` ends the server and the agents.",
    .options = options,
    .examples = "probing cluster up  # once, on a host that the others reach\n"
                "probing cluster up --listen 10.0.0.1:4222\n"
                "probing cluster down",
    .run = run_cluster,
};
