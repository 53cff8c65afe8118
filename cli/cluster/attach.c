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

static void print_host(void *context, const char *host, bool good, const char *text)
{
    FILE *out = good ? stdout : stderr;
    (void)context;
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, '\n');
        prb_out_text(out, host);
        fputs(": ", out);
        prb_out_cut(out, at, (size_t)(end - at), 0);
        fputc('\n', out);
    }
    fflush(out);
}

/* The words of the options that each host gets, too. */
static bool attach_hosts(const struct prb_run *run, struct prb_error *err)
{
    static const struct {
        enum prb_cluster_option option;
        const char *word;
        bool value;
    } passed[] = {
        {PRB_CLUSTER_ALLOW, "--allow", true},     {PRB_CLUSTER_ALL_USERS, "--all-users", false},
        {PRB_CLUSTER_LINGER, "--linger", true},   {PRB_CLUSTER_INSECURE, "--insecure", false},
        {PRB_CLUSTER_HISTORY, "--history", true}, {PRB_CLUSTER_EVERY, "--every", true},
        {PRB_CLUSTER_METRICS, "--metrics", true}};
    const char *words[2 * PRB_REPEATS_MAX * sizeof passed / sizeof *passed];
    size_t count = 0;
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        const struct prb_option_value *given = &run->options[passed[i].option];
        for (unsigned k = 0; k < given->count && k < (passed[i].value ? PRB_REPEATS_MAX : 1); k++) {
            words[count++] = passed[i].word;
            if (passed[i].value)
                words[count++] = given->texts[k];
        }
    }
    const struct prb_cluster_hosts_options options = {
        .bus = run->globals[PRB_GLOBAL_BUS].text,
        .file = run->options[PRB_CLUSTER_HOSTS].text,
        .words = words,
        .word_count = count,
        .told = print_host,
    };
    return prb_cluster_attach_hosts(&options, err);
}

bool prb_cli_cluster_attach(const struct prb_run *run, struct prb_error *err)
{
    struct prb_cluster_attached attached;
    struct prb_cluster_agent_options options = {
        .bus = run->globals[PRB_GLOBAL_BUS].text,
        .all_users = run->options[PRB_CLUSTER_ALL_USERS].count,
        .history = run->options[PRB_CLUSTER_HISTORY].text,
        .insecure = run->options[PRB_CLUSTER_INSECURE].count,
        .metrics = run->options[PRB_CLUSTER_METRICS].text,
        .stop_fd = -1,
    };
    if (!take_allow(run, &options, err) ||
        !prb_run_number(run, PRB_CLUSTER_LINGER, PRB_SECONDS_LEAST, LINGER_MOST, &options.linger,
                        err) ||
        !prb_run_number(run, PRB_CLUSTER_EVERY, PRB_SECONDS_LEAST, LINGER_MOST,
                        &options.history_every, err))
        return false;
    if (run->options[PRB_CLUSTER_HOSTS].count)
        return attach_hosts(run, err);
    if (!prb_agent_attach(&options, &attached, err))
        return false;
    printf("this host's agent %s, process %d\n",
           attached.already ? "runs already, and stays as it is" : "is on the bus", attached.pid);
    return prb_cli_cluster_print_own(err);
}

bool prb_cli_cluster_detach(const struct prb_run *run, struct prb_error *err)
{
    bool was_running;
    (void)run;
    if (!prb_agent_detach(&was_running, err))
        return false;
    puts(was_running ? "this host's agent has ended" : "no agent of yours runs on this host");
    return true;
}
