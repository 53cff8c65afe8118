/* probing dap: a debug adapter, as editors start one: on standard input and output, or on an
 * address. */
#include "serve.h"

enum { ADDRESS, ONCE, TOKEN_FILE, ANY_USER };

static const struct prb_option options[] = {
    [ADDRESS] = {'a', "address", "ADDR",
                 "serve on HOST:PORT or a Unix socket's path instead of standard input and output",
                 NULL},
    [ONCE] = {0, "once", NULL, "with --address: end with the first client", NULL},
    [TOKEN_FILE] = {0, "token-file", "FILE",
                    "clients must show the token in FILE (\"token\" in their configuration)", NULL},
    [ANY_USER] = {0, "any-user", NULL, "on loopback let other users in, too (port forwarders)",
                  NULL},
    {0},
};

static bool run_dap(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO_FREE char *token = NULL;
    if (!prb_serve_token(run->options[TOKEN_FILE].text, &token, err))
        return false;
    if (!run->options[ADDRESS].count)
        return prb_dap_serve(STDIN_FILENO, STDOUT_FILENO, err);
    struct prb_dap_listen_options listen = {
        .address = run->options[ADDRESS].text,
        .token = token,
        .any_user = run->options[ANY_USER].count != 0,
        .once = run->options[ONCE].count != 0,
    };
    return prb_serve(&listen, err);
}

const struct prb_command prb_command_dap = {
    .name = "dap",
    .aliases = "",
    .summary = "a debug adapter for editors",
    .arguments = "",
    .target = PRB_USES_NO_TARGET,
    .description = "Speaks the Debug Adapter Protocol on standard input and output, or on an "
                   "address. What is debugged stands "
                   "in the client's configuration: processId, processName, core, snapshot, or a "
                   "program to launch. When the "
                   "client goes, the target runs on as before.",
    .options = options,
    .examples = "probing dap  # what an editor starts\n"
                "probing dap --address 127.0.0.1:9922  # for editors that connect\n",
    .run = run_dap,
};
