/* Questions to the back end, and which thread they are about. */
#include <string.h>

#include "dap/session/session.h"

struct prb_dap_backend *prb_dap_session_backend(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    struct prb_dap_backend *backend = session->backend;
    pthread_mutex_unlock(&session->lock);
    return backend;
}

bool prb_dap_session_is_live(struct prb_dap_session *session)
{
    const struct prb_dap_backend *backend = prb_dap_session_backend(session);
    return backend && strcmp(backend->ops->name, "live") == 0;
}

json_t *prb_dap_ask_for(struct prb_dap_session *session, const char *method, json_t *arguments,
                        pid_t thread, double timeout, struct prb_error *err)
{
    const struct prb_dap_call call = {
        .method = method,
        .arguments = arguments,
        .thread = thread,
        .timeout = timeout,
        .cancelled = prb_dap_is_cancelled,
        .context = session,
    };
    struct prb_dap_backend *backend = prb_dap_session_backend(session);
    if (!backend)
        return PRB_NULL(prb_fail(err, PRB_USAGE, "the session is not attached"));
    return backend->ops->call(backend, &call, err);
}

json_t *prb_dap_ask(struct prb_dap_session *session, const char *method, json_t *arguments,
                    pid_t thread, struct prb_error *err)
{
    return prb_dap_ask_for(session, method, arguments, thread, 0, err);
}

/* ---- threads of frames and values ---- */

void prb_dap_session_set_thread(struct prb_dap_session *session, enum prb_dap_handle kind,
                                json_int_t id, pid_t thread)
{
    pthread_mutex_lock(&session->lock);
    prb_dap_thread_map_add(&session->threads, kind, id, thread);
    pthread_mutex_unlock(&session->lock);
}

pid_t prb_dap_session_thread(struct prb_dap_session *session, enum prb_dap_handle kind,
                             json_int_t id)
{
    pthread_mutex_lock(&session->lock);
    pid_t thread = prb_dap_thread_map_find(&session->threads, kind, id);
    pthread_mutex_unlock(&session->lock);
    return thread;
}
