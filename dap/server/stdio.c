/* The host of a session that serves one client, on standard input and output. */
#include "dap/dap.h"
#include "dap/session/session.h"

static struct prb_dap_backend *claim(struct prb_dap_host *host, pid_t pid,
                                     struct prb_dap_session *session, json_t **stopped_out,
                                     struct prb_error *err)
{
    (void)host;
    *stopped_out = NULL;
    return prb_dap_live_open(pid, prb_dap_target_event, session, err);
}

static void release(struct prb_dap_host *host, struct prb_dap_backend *backend, json_t *stopped,
                    bool keep)
{
    (void)host, (void)stopped, (void)keep;
    prb_dap_backend_close(backend);
}

static const struct prb_dap_host_ops host_ops = {.claim = claim, .release = release};

bool prb_dap_serve(int in, int out, struct prb_error *err)
{
    struct prb_dap_host host = {.ops = &host_ops, .relays = true};
    return prb_dap_session_run(&host, in, out, true, err);
}

bool prb_dap_serve_process(int in, int out, pid_t pid, struct prb_error *err)
{
    struct prb_dap_host host = {.ops = &host_ops, .pid = pid};
    return prb_dap_session_run(&host, in, out, true, err);
}
