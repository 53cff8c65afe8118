/* disconnect and terminate. */
#include "dap/attach/ending.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/file.h"
#include "base/syscalls.h"
#include "dap/attach/program.h"
#include "dap/session/countdown.h"
#include "dap/session/session.h"
#include "dap/session/watch.h"

bool prb_dap_ending_signal(struct prb_dap_session *session, int number, struct prb_error *err)
{
    int failed = session->pidfd >= 0
                     ? (int)syscall(SYS_pidfd_send_signal, session->pidfd, number, NULL, 0)
                     : kill(session->pid, number);
    return failed == 0 ||
           prb_fail_sys(err, errno, "signal %d to process %d", number, (int)session->pid);
}

void prb_dap_ending_release(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    struct prb_dap_backend *backend = session->backend;
    struct prb_dap_countdown *countdown = session->countdown;
    struct prb_dap_watch *watch = session->watch;
    session->backend = NULL; /* from here on nobody asks it */
    session->countdown = NULL;
    session->watch = NULL;
    session->state = PRB_DAP_ENDED;
    pthread_mutex_unlock(&session->lock);
    prb_dap_watch_close(watch);
    prb_dap_countdown_stop(countdown);
    pthread_mutex_lock(&session->lock);
    while (session->running[PRB_DAP_WORKERS - 1]) /* a pause, cancelled by now */
        pthread_cond_wait(&session->changed, &session->lock);
    json_t *stopped = session->keep ? json_incref(session->stopped) : NULL;
    pthread_mutex_unlock(&session->lock);
    if (backend)
        session->host->ops->release(session->host, backend, stopped, session->keep);
    json_decref(stopped);
    prb_dap_countdown_free(countdown);
    prb_dap_program_close(session->program, session->leave_program);
    session->program = NULL;
    if (session->pidfd >= 0)
        close(PRB_STEAL_FD(session->pidfd));
}

/* SIGTERM; to what descends from a program that was launched, too. */
static bool end_all(struct prb_dap_session *session, struct prb_error *err)
{
    if (session->program)
        prb_dap_program_end_children(session->program);
    return prb_dap_ending_signal(session, SIGTERM, err);
}

static bool handle_disconnect(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                              struct prb_error *err)
{
    bool terminate = session->program != NULL, suspend = false;
    (void)body_out;
    if (!prb_dap_get_flag(arguments, "terminateDebuggee", &terminate, err) ||
        !prb_dap_get_flag(arguments, "suspendDebuggee", &suspend, err))
        return false;
    bool live = prb_dap_session_is_live(session) && (!session->gone || session->replaced);
    session->leave_program = !terminate;
    session->keep = suspend && !terminate && session->host->keeps_target && live && !session->gone;
    if (session->keep)
        prb_dap_breakpoints_clear(session);
    /* Not after `terminated`: dape sends terminateDebuggee whenever a session ends.  A process that
     * is only read is not ours to end. */
    bool ends = terminate && live && session->program && prb_dap_end_claim(session);
    if (terminate && live && !end_all(session, err)) {
        if (ends)
            prb_dap_end_unclaim(session);
        return false;
    }
    prb_dap_ending_release(session);
    /* It goes out before the response, where a client may stop reading; what the end of the program
     * itself sends comes after it, or never, since the session was released. */
    if (ends)
        prb_dap_send_now(session, "terminated", NULL);
    prb_dap_session_leave(session);
    return true;
}

static void add_disconnect(json_t *capabilities)
{
    json_object_set_new(capabilities, "supportTerminateDebuggee", json_true());
}

const struct prb_dap_request prb_dap_disconnect = {
    .command = "disconnect",
    .more = add_disconnect,
    .when = PRB_DAP_BEFORE,
    .handle = handle_disconnect,
};

/*
 * terminate ends a program that launch started.  After attach it only detaches, since several
 * clients send it when their user just leaves; unless onTerminate of the configuration is "SIGTERM"
 * or, as in the stock debugger, "KeyboardInterrupt".
 */
static bool handle_terminate(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                             struct prb_error *err)
{
    const char *how = json_string_value(json_object_get(session->settings, "onTerminate"));
    bool interrupts = how && strcmp(how, "KeyboardInterrupt") == 0;
    bool ends = interrupts || session->program || (how && strcmp(how, "SIGTERM") == 0);
    (void)arguments, (void)body_out;
    if (!session->backend || (session->gone && !session->replaced))
        return true;
    if (session->gone && ends)
        return interrupts ? prb_dap_ending_signal(session, SIGINT, err) : end_all(session, err);
    if (!ends || !prb_dap_session_is_live(session)) {
        prb_dap_ending_release(session);
        prb_dap_event(session, "terminated", NULL);
        return true;
    }
    /* It runs first: its signal handler must not raise an exception in the debugger's code. */
    prb_dap_breakpoints_clear(session);
    prb_dap_target_resumed(session);
    json_decref(prb_dap_ask(session, "continue", NULL, 0, NULL));
    return interrupts ? prb_dap_ending_signal(session, SIGINT, err) : end_all(session, err);
}

const struct prb_dap_request prb_dap_terminate = {
    .command = "terminate",
    .capabilities = "supportsTerminateRequest",
    .handle = handle_terminate,
};
