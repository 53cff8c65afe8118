/* probing cluster: the bus that the hosts of a job meet at, and a host's agent on it. */
#include "cli/cluster/cluster.h"

#include <string.h>

#include "cli/fleet/crashes.h"
#include "format/format.h"

static const struct prb_option options[] = {
    [PRB_CLUSTER_LISTEN] = {0, "listen", "ADDRESS",
                            "up: only there, HOST:PORT; port 0: any (default: all addresses, 4222)",
                            NULL},
    [PRB_CLUSTER_STORE] = {0, "store", "SIZE",
                           "up: the most that the server keeps on disk (default 1G)", NULL},
    [PRB_CLUSTER_PRINT] = {0, "print", NULL,
                           "up: only write the keys, and print what an own NATS server needs",
                           NULL},
    [PRB_CLUSTER_ALLOW] = {0, "allow", "LIST",
                           "attach: control, eval: what may be done to the ranks beside looking",
                           NULL},
    [PRB_CLUSTER_ALL_USERS] = {0, "all-users", NULL, "attach: also ranks of other users", NULL},
    [PRB_CLUSTER_LINGER] = {0, "linger", "SECONDS",
                            "attach: how long the agent stays after the last rank (default 600)",
                            NULL},
    [PRB_CLUSTER_INSECURE] = {0, "insecure", NULL,
                              "attach: also to a bus without TLS on another host", NULL},
    [PRB_CLUSTER_HOSTS] = {0, "hosts", "FILE", "attach: on each host that the file names, by ssh",
                           NULL},
    [PRB_CLUSTER_HISTORY] = {0, "history", "TABLES",
                             "attach: publish new rows of these tables (a,b; '*': all)", NULL},
    [PRB_CLUSTER_EVERY] = {0, "every", "SECONDS", "attach: how often that is done (default 10)",
                           NULL},
    [PRB_CLUSTER_METRICS] = {0, "metrics", "FILE",
                             "attach: write metrics of this host to FILE.prom, for node_exporter",
                             NULL},
    [PRB_CLUSTER_ONCE] = {0, "once", NULL, "record: end with what there is", NULL},
    [PRB_CLUSTER_FORMAT] =
        {'f', "format", "FORMAT",
         "jobs, nodes, ranks, crashes: a table (the default), json, jsonl or csv", PRB_ROW_FORMATS},
    [PRB_CLUSTER_ALL] = {0, "all", NULL, "crashes: a line for each dump, equal ones too", NULL},
    [PRB_CLUSTER_PULL] = {0, "pull", "FOLDER", "crashes: fetch one dump of each line into it",
                          NULL},
    {0},
};

static const struct {
    const char *name;
    bool (*run)(const struct prb_run *run, struct prb_error *err);
} words[] = {
    {"up", prb_cli_cluster_up},         {"down", prb_cli_cluster_down},
    {"attach", prb_cli_cluster_attach}, {"detach", prb_cli_cluster_detach},
    {"jobs", prb_cli_cluster_hosts},    {"nodes", prb_cli_cluster_hosts},
    {"ranks", prb_cli_cluster_hosts},   {"crashes", prb_cli_cluster_crashes},
    {"record", prb_cli_cluster_record},
};

bool prb_cli_cluster_crashes(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_job_crashes how = {
        .all = run->options[PRB_CLUSTER_ALL].count,
        .format = run->options[PRB_CLUSTER_FORMAT].text,
        .pull = run->options[PRB_CLUSTER_PULL].text,
    };
    return prb_job_crash_list(run, &how, err);
}

static bool run_cluster(const struct prb_run *run, struct prb_error *err)
{
    bool record = strcmp(run->arguments[0], "record") == 0;
    if (run->argument_count > 1 && !record)
        return prb_usage(run, err, "cluster %s takes no argument", run->arguments[0]);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(run->arguments[0], words[i].name) == 0)
            return prb_run_job(run) && words[i].run != prb_cli_cluster_crashes
                       ? prb_usage(run, err, "-t @JOB is for cluster crashes")
                       : words[i].run(run, err);
    return prb_usage_word(run, err);
}

const struct prb_command prb_command_cluster = {
    .name = "cluster",
    .aliases = "",
    .summary = "let the hosts of a job meet",
    .arguments = "up|down|attach|detach|crashes|record|…",
    .words = "up down attach detach jobs nodes ranks crashes record",
    .arguments_min = 1,
    .arguments_max = 2,
    .target = PRB_USES_JOB_IF_GIVEN,
    .description =
        "One host needs nothing of this. `up` starts a NATS server with keys and TLS of its own, "
        "keeps it running, and prints the command that joins a host, alone on the last line. It "
        "writes the folder ~/.config/probing/bus with four files: agent is for the hosts that "
        "join, look, control and eval for those who ask; each holds a secret key. Once more, it "
        "keeps the keys and starts what has ended. `down` ends the server and the agents.\n\n"
        "`attach` starts this host's agent in the background and returns when it is on the bus: it "
        "tells of the ranks that run here and answers for them, read from outside; it is the "
        "host's collector, too. There is one for a user on a host. Others may look; control and "
        "eval are refused unless `attach --allow` grants them, and then each request is signed. "
        "What was done and refused stands in ~/.local/state/probing/agent-HOST.log. `detach` ends "
        "the agent. `jobs`, `nodes` and `ranks` list who is on the bus. `crashes` lists the dumps "
        "of a "
        "job's ranks on their hosts (-t @JOB; the only job without it), equal ones on one line, "
        "also of ranks and hosts that are gone; --pull fetches one of each line.\n\n"
        "`attach --history TABLES` publishes what the ranks record from then on to a stream of the "
        "server, as JSON lines. `record FILE` takes it into a file that `probing -t FILE query` "
        "reads, `record postgresql://…` into a database, until Ctrl-C; begun again it goes on "
        "where "
        "it was. A password stands better in ~/.pgpass than on the command line. `attach --metrics "
        "FILE.prom` writes the metrics of this host's ranks to that file, for node_exporter's "
        "textfile collector, and removes it when the agent ends.",
    .options = options,
    .examples = "probing cluster up  # once, on a host that the others reach\n"
                "probing cluster attach  # on each host\n"
                "probing cluster attach --history '*'\n"
                "probing cluster attach --metrics /var/lib/prometheus/node-exporter/ranks.prom\n"
                "probing cluster record job.db\n"
                "probing cluster record postgresql:///metrics\n"
                "probing cluster nodes\n"
                "probing cluster crashes --pull dumps\n"
                "probing -t @ hang\n"
                "probing cluster down",
    .run = run_cluster,
};
