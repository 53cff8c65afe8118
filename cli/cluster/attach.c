/* probing cluster attach, detach. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/options.h"
#include "cli/print/out.h"

#define LINGER_MOST 1e6 /* s */

static bool take_allow(const struct prb_run *run, struct prb_cluster_agent_options *out,
                       struct prb_error *err)
{
    const struct prb_option_value *given = &run->options[PRB_CLUSTER_ALLOW];
    for (unsigned i = 0; i < given->count; i++) {
        for (const char *at = given->texts[i]; *at;) {
            size_t len = strcspn(at, ",");
            if (len == 7 && strncmp(at, "control", len) == 0)
                out->allow_control = true;
            else if (len == 4 && strncmp(at, "eval", len) == 0)
                out->allow_eval = true;
            else if (len != 4 || strncmp(at, "look", len) != 0)
                return prb_usage(run, err, "--allow is a list of control and eval, not \"%.40s\"",
                                 given->texts[i]);
            at += len + (at[len] == ',');
        }
    }
    return true;
}

bool prb_cli_cluster_attach(const struct prb_run *run, struct prb_error *err)
{
    struct prb_cluster_attached attached;
    struct prb_cluster_agent_options options = {
        .bus = run->globals[PRB_GLOBAL_BUS].text,
        .all_users = run->options[PRB_CLUSTER_ALL_USERS].count,
        .history = run->options[PRB_CLUSTER_HISTORY].text,
        .insecure = run->options[PRB_CLUSTER_INSECURE].count,
        .stop_fd = -1,
    };
    if (!take_allow(run, &options, err) ||
        !prb_run_number(run, PRB_CLUSTER_LINGER, PRB_SECONDS_LEAST, LINGER_MOST, &options.linger,
                        err) ||
        !prb_run_number(run, PRB_CLUSTER_EVERY, PRB_SECONDS_LEAST, LINGER_MOST,
                        &options.history_every, err) ||
        !prb_cluster_attach(&options, &attached, err))
        return false;
    printf("this host's agent %s, process %d\n",
           attached.already ? "runs already, and stays as it is" : "is on the bus", attached.pid);
    return prb_cli_cluster_print_own(err);
}

bool prb_cli_cluster_detach(const struct prb_run *run, struct prb_error *err)
{
    bool was_running;
    (void)run;
    if (!prb_cluster_detach(&was_running, err))
        return false;
    puts(was_running ? "this host's agent has ended" : "no agent of yours runs on this host");
    return true;
}
