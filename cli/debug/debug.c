/* probing debug: a live process, or what is left of one, for a debugger that connects (DAP). */
#include <string.h>

#include "cli/debug/dump.h"
#include "cli/debug/serve.h"
#include "cli/fleet/debug.h"
#include "cli/options.h"

#define DEFAULT_ADDRESS "127.0.0.1:9922"

enum {
    DUMP,
    TO_TARGET,
    PAUSE,
    LISTEN,
    ADDRESS,
    REACHED_AT,
    RESUME_AFTER,
    SNAPSHOT,
    CORE,
    TOKEN_FILE,
    ANY_USER
};

static const struct prb_option options[] = {
    [DUMP] = {'d', "dump", NULL, "print the stacks, as backtrace does", NULL},
    [TO_TARGET] = {0, "to-target", NULL, "with --dump: into the process's own standard error",
                   NULL},
    [PAUSE] = {'p', "pause", NULL, "pause the process at once and wait for a debugger", NULL},
    [LISTEN] = {'l', "listen", NULL, "wait for a debugger; the process runs on (the default)",
                NULL},
    [ADDRESS] = {'a', "address", "ADDR",
                 "where: HOST:PORT or the path of a Unix socket (default " DEFAULT_ADDRESS ")",
                 NULL},
    [REACHED_AT] = {0, "reached-at", "HOST:PORT",
                    "where clients reach it, when a tunnel leads there: told to them for the "
                    "sessions of child processes",
                    NULL},
    [RESUME_AFTER] = {0, "resume-after", "SECONDS",
                      "with --pause: resume it when no debugger has connected by then", NULL},
    [SNAPSHOT] = {0, "snapshot", NULL,
                  "only look, without the probe: stacks and variables are copied while the Python "
                  "threads stop for milliseconds, and the process runs on",
                  NULL},
    [CORE] = {0, "core", "FILE", "a core or snapshot file instead of a process", NULL},
    [TOKEN_FILE] = {0, "token-file", "FILE",
                    "clients must show the token in FILE (\"token\" in their configuration)", NULL},
    [ANY_USER] = {0, "any-user", NULL,
                  "on loopback let other users in, too, without a token (port forwarders)", NULL},
    {0},
};

static bool check_options(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_option_value *given = run->options;
    bool file = given[CORE].count != 0;
    if (file && (prb_run_has_target(run) || given[PAUSE].count || given[SNAPSHOT].count))
        return prb_usage(run, err, "--core FILE takes the place of a process");
    if (given[PAUSE].count && given[SNAPSHOT].count)
        return prb_usage(run, err, "--snapshot does not stop the process: leave out --pause");
    if (given[RESUME_AFTER].count && !given[PAUSE].count)
        return prb_usage(run, err, "--resume-after goes with --pause");
    return true;
}

static bool run_debug(const struct prb_run *run, struct prb_error *err)
{
    const struct prb_stack_options plain = {0};
    const struct prb_option_value *given = run->options;
    const char *socket = NULL;
    PRB_AUTO_FREE char *token = NULL;
    if (given[TO_TARGET].count && !given[DUMP].count)
        return prb_usage(run, err, "--to-target goes with --dump");
    if (given[TO_TARGET].count)
        return prb_dump_to_target(run, err);
    if (given[DUMP].count)
        return prb_backtrace(run, &plain, err);
    struct prb_dap_listen_options listen = {
        .address = given[ADDRESS].count ? given[ADDRESS].text : DEFAULT_ADDRESS,
        .reached = given[REACHED_AT].text,
        .any_user = given[ANY_USER].count != 0,
        .file = given[CORE].text,
        .pause = given[PAUSE].count != 0,
        .look = given[SNAPSHOT].count != 0,
    };
    if (!check_options(run, err) ||
        !prb_run_number(run, RESUME_AFTER, PRB_SECONDS_LEAST, PRB_SECONDS_MOST,
                        &listen.resume_after, err) ||
        !prb_serve_token(given[TOKEN_FILE].text, &token, err))
        return false;
    listen.token = token;
    bool here = true;
    if (prb_run_job(run) && !prb_job_debug(run, &listen, &here, err))
        return false;
    if (!here)
        return true;
    if (!listen.file && !prb_run_process(run, &listen.pid, &socket, err))
        return false;
    if (socket)
        return prb_usage(run, err, "debug wants a process, not its probe's socket");
    return prb_serve(&listen, err);
}

const struct prb_command prb_command_debug = {
    .name = "debug",
    .aliases = "dbg d attach",
    .summary = "let VS Code and other debuggers connect (DAP)",
    .arguments = "",
    .target = PRB_USES_TARGET_IF_GIVEN,
    .description = "Serves the Debug Adapter Protocol for one process, and prints what to paste "
                   "into launch.json. The stock Python "
                   "debugger's attach configuration works. --pause stops all Python threads first; "
                   "--listen, the default, does nothing to the "
                   "process until a client comes. When the client goes, breakpoints are cleared "
                   "and the process runs on at full "
                   "speed. Ctrl-C ends the server, the process runs on.\n\n"
                   "On loopback this user and the owner of the process come in as they are, all "
                   "others by the token that is printed; on any other address everybody needs it. "
                   "One of your own (--token-file, or PROBING_DEBUG_TOKEN) is asked of all.\n\n"
                   "A rank on another host (-t @JOB:RANK) is debugged over the bus: this command "
                   "listens here, on loopback or a Unix socket, and the rank's agent, which must "
                   "allow eval, lets it go on when either side goes.\n\n"
                   "`debug --dump` is `backtrace` under its older name; with --to-target the "
                   "stacks go where the process "
                   "writes its errors, so they stand in its own log, and it runs no code for that.",
    .options = options,
    .examples = "probing 12345 debug  # wait on " DEFAULT_ADDRESS "\n"
                "probing 12345 debug --pause  # stop it first\n"
                "probing 12345 debug --pause --resume-after 60  # at the most a minute\n"
                "probing 12345 debug --listen --address /run/user/1000/debug.sock\n"
                "probing -t @llama:3 debug  # rank 3, on whichever host it is\n"
                "probing debug --core core.12345\n"
                "probing 12345 d -d  # the stacks\n"
                "probing 12345 debug --dump --to-target  # into its log\n",
    .run = run_debug,
};
