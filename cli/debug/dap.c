/* probing dap: a debug adapter, as editors start one: on standard input and output, or on an
 * address. */
#include "cli/debug/serve.h"

#include "cli/fleet/debug.h"

enum { ADDRESS, ONCE, TOKEN_FILE, ANY_USER };

static const struct prb_option options[] = {
    [ADDRESS] = {'a', "address", "ADDR",
                 "serve on HOST:PORT or a Unix socket's path instead of standard input and output",
                 NULL},
    [ONCE] = {0, "once", NULL, "with --address: end with the first client", NULL},
    [TOKEN_FILE] = {0, "token-file", "FILE",
                    "clients must show the token in FILE (\"token\" in their configuration)", NULL},
    [ANY_USER] = {0, "any-user", NULL,
                  "on loopback let other users in, too, without a token (port forwarders)", NULL},
    {0},
};

/* What was named before the command: on standard input and output, without an address. */
static bool serve_named(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_dap_listen_options plain = {0};
    const char *socket;
    bool here = true;
    pid_t pid;
    if (run->options[ADDRESS].count)
        return prb_usage(run, err, "for a server of one process: probing TARGET debug --address");
    if (prb_run_job(run) && !prb_job_debug(run, &plain, &here, err))
        return false;
    if (!here)
        return true;
    if (!prb_run_process(run, &pid, &socket, err))
        return false;
    if (socket)
        return prb_usage(run, err, "dap wants a process, not its probe's socket");
    return prb_dap_serve_process(STDIN_FILENO, STDOUT_FILENO, pid, err);
}

static bool run_dap(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_option_value *given = run->options;
    PRB_AUTO_FREE char *token = NULL;
    if (!given[ADDRESS].count &&
        (given[ONCE].count || given[TOKEN_FILE].count || given[ANY_USER].count))
        return prb_usage(run, err, "--once, --token-file and --any-user go with --address");
    if (!prb_serve_token(given[TOKEN_FILE].text, &token, err))
        return false;
    if (prb_run_has_target(run))
        return serve_named(run, err);
    if (!given[ADDRESS].count)
        return prb_dap_serve(STDIN_FILENO, STDOUT_FILENO, err);
    struct prb_dap_listen_options listen = {
        .address = given[ADDRESS].text,
        .token = token,
        .any_user = given[ANY_USER].count != 0,
        .once = given[ONCE].count != 0,
    };
    return prb_serve(&listen, err);
}

const struct prb_command prb_command_dap = {
    .name = "dap",
    .aliases = "",
    .summary = "a debug adapter for editors",
    .arguments = "",
    .target = PRB_USES_TARGET_IF_GIVEN,
    .description =
        "Speaks the Debug Adapter Protocol on standard input and output, or on an "
        "address. What is debugged stands "
        "in the client's configuration: processId, processName, core, snapshot, or a "
        "program to launch; or, named before the command, a process or a rank (@JOB:RANK), "
        "which may be on another host. When the "
        "client goes, the target runs on as before.\n\n"
        "On an address clients show the token that is printed; on loopback this user "
        "does without.",
    .options = options,
    .examples = "probing dap  # what an editor starts\n"
                "probing -t @llama:3 dap  # rank 3, on whichever host it is\n"
                "probing dap --address 127.0.0.1:9922  # for editors that connect\n",
    .run = run_dap,
};
