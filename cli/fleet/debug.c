/* probing -t @JOB:RANK debug, dap: a rank on another host, over the bus. */
#include "cli/fleet/debug.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cli/ends.h"
#include "cli/fleet/job.h"
#include "cli/print/out.h"

static void say(void *context, const char *text)
{
    (void)context;
    prb_out_note(text);
}

/* Sources are the rank's, and the rank is elsewhere. */
static void print_folder(const char *folder)
{
    if (!*folder)
        return;
    fputs("If the sources are elsewhere here, add to it:\n"
          "    \"pathMappings\": [{ \"localRoot\": \"${workspaceFolder}\",\n"
          "                       \"remoteRoot\": ",
          stdout);
    prb_out_json_text(stdout, folder, strlen(folder));
    fputs(" }]\n", stdout);
}

static void print_ready(void *context, const struct prb_fleet_debugged *what)
{
    const struct prb_dap_listen_options *options = context;
    const char *colon = strrchr(what->address, ':');
    if (!*what->address) /* standard output is the client's */
        return;
    printf("rank %d (%s, pid %d)%s; ", what->rank, what->host ? what->host : "?", (int)what->pid,
           options->pause ? " is paused" : "");
    printf("waiting for a debugger on %s\n", what->address);
    if (colon && !strchr(what->address, '/')) {
        bool bracket = what->address[0] == '[';
        printf("\nIn VS Code's .vscode/launch.json, then F5:\n\n"
               "    {\n"
               "        \"name\": \"Attach to rank %d\",\n"
               "        \"type\": \"debugpy\",\n"
               "        \"request\": \"attach\",\n"
               "        \"connect\": { \"host\": \"%.*s\", \"port\": %s },\n"
               "        \"justMyCode\": false\n"
               "    }\n\n",
               what->rank, (int)(colon - what->address) - 2 * bracket, what->address + bracket,
               colon + 1);
        print_folder(what->folder);
    }
    fflush(stdout);
}

bool prb_job_debug(const struct prb_run *run, const struct prb_dap_listen_options *options,
                   bool *here, struct prb_error *err)
{
    /* Before the bus makes threads. */
    PRB_AUTO_FD int stop = options->address ? prb_take_ends() : -1;
    if (options->address && stop < 0)
        return prb_cli_fail(err, PRB_IO, "", "signals: %s", strerror(errno));
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = prb_run_open_job(run, err);
    if (!fleet)
        return false;
    *here = strcmp(prb_fleet_info(fleet)->transport, "nats") != 0;
    if (*here)
        return true;
    if (options->token)
        return prb_usage(run, err,
                         "a token is not for a rank on another host: clients of this "
                         "user come in, on loopback");
    const struct prb_fleet_debug_options wanted = {
        .address = options->address,
        .in = STDIN_FILENO,
        .out = STDOUT_FILENO,
        .any_user = options->any_user,
        .pause = options->pause,
        .look = options->look,
        .resume_after = options->resume_after,
        .stop_fd = stop,
        .ready = print_ready,
        .note = say,
        .context = (void *)options,
    };
    return prb_fleet_debug(fleet, &wanted, err);
}
