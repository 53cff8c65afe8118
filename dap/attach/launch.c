/* launch: start a program under the debugger; it waits for configurationDone. */
#include "dap/attach/attach.h"
#include "dap/attach/program.h"

static bool handle_launch(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                          struct prb_error *err)
{
    const char *token = NULL;
    (void)body_out;
    if (session->state != PRB_DAP_INITIALIZED)
        return prb_fail(err, PRB_USAGE, "this session is already attached");
    if (!prb_dap_get_string(arguments, "token", &token, err) ||
        !prb_dap_authorize(session, token, err))
        return false;
    if (session->host->pid || session->host->file)
        return prb_fail(err, PRB_USAGE, "this server debugs one target: use attach");
    session->program = prb_dap_program_start(session, arguments, err);
    if (!session->program)
        return false;
    if (prb_dap_attach_to(session, prb_dap_program_pid(session->program), arguments, "launch", err))
        return true;
    prb_dap_program_close(session->program, false);
    session->program = NULL;
    return false;
}

const struct prb_dap_request prb_dap_launch = {
    .command = "launch",
    .handle = handle_launch,
};
