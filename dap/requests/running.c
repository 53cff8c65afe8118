/* Going on and standing still: continue, the steps, pause, goto. */
#include "base/clock.h"
#include "dap/client/sources.h"

/*
 * Let the target go on by a method.  What was known of the stop is void before it is asked, since
 * the next stop may come before its answer; when it refuses, the target stands as before.
 */
static json_t *go_on(struct prb_dap_session *session, const char *method, json_t *wanted,
                     struct prb_error *err)
{
    pthread_mutex_lock(&session->lock);
    json_t *before = json_incref(session->stopped);
    double alone_before = session->alone_since;
    pthread_mutex_unlock(&session->lock);
    struct prb_error why = {0};
    prb_dap_target_resumed(session);
    if (json_is_true(json_object_get(wanted, "singleThread"))) {
        pthread_mutex_lock(&session->lock);
        session->alone_since = prb_clock_s();
        session->alone_said = false;
        pthread_mutex_unlock(&session->lock);
    }
    json_t *answer = prb_dap_ask(session, method, wanted, 0, &why);
    if (!answer && why.code == PRB_GONE)
        answer = json_object(); /* it went on, and to its end before it could say so */
    if (!answer && err)
        *err = why;
    pthread_mutex_lock(&session->lock);
    if (!answer && !session->stopped && !session->gone) {
        session->stopped = json_incref(before);
        session->alone_since = alone_before;
    }
    pthread_mutex_unlock(&session->lock);
    json_decref(before);
    return answer;
}

/* Only the thread that is named: by the stock debugger's setting, since clients ask for it without
 * meaning to wait for a lock that another thread holds. */
static json_t *wanted_of(const struct prb_dap_session *session, json_int_t thread)
{
    bool alone = json_is_false(json_object_get(session->settings, "steppingResumesAllThreads"));
    json_t *wanted = json_pack("{s:I}", "threadId", thread);
    if (alone)
        json_object_set_new(wanted, "singleThread", json_true());
    return wanted;
}

static bool handle_continue(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                            struct prb_error *err)
{
    json_int_t thread = 0;
    if (!prb_dap_get_integer(arguments, "threadId", &thread, err))
        return false;
    json_t *wanted = json_pack("{s:I}", "threadId", thread);
    json_t *answer = go_on(session, "continue", wanted, err);
    json_decref(wanted);
    if (answer)
        *body_out = json_pack("{s:b}", "allThreadsContinued", true);
    json_decref(answer);
    return answer != NULL;
}

const struct prb_dap_request prb_dap_continue = {
    .command = "continue",
    .method = "continue",
    .when = PRB_DAP_STOPPED,
    .handle = handle_continue,
};

static bool step(struct prb_dap_session *session, const char *method, json_t *arguments,
                 struct prb_error *err)
{
    json_int_t thread = 0, target = 0;
    if (!prb_dap_get_integer(arguments, "threadId", &thread, err) ||
        !prb_dap_get_integer(arguments, "targetId", &target, err))
        return false;
    json_t *wanted = wanted_of(session, thread);
    if (prb_dap_get(arguments, "targetId"))
        json_object_set_new(wanted, "targetId", json_integer(target));
    json_t *answer = go_on(session, method, wanted, err);
    json_decref(wanted);
    json_decref(answer);
    return answer != NULL;
}

static bool handle_next(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                        struct prb_error *err)
{
    (void)body_out;
    return step(session, "next", arguments, err);
}

static bool handle_step_in(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                           struct prb_error *err)
{
    (void)body_out;
    return step(session, "step_in", arguments, err);
}

static bool handle_step_out(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                            struct prb_error *err)
{
    (void)body_out;
    return step(session, "step_out", arguments, err);
}

const struct prb_dap_request prb_dap_next = {
    .command = "next",
    .method = "next",
    .when = PRB_DAP_STOPPED,
    .handle = handle_next,
};
const struct prb_dap_request prb_dap_step_in = {
    .command = "stepIn",
    .method = "step_in",
    .when = PRB_DAP_STOPPED,
    .handle = handle_step_in,
};
const struct prb_dap_request prb_dap_step_out = {
    .command = "stepOut",
    .method = "step_out",
    .when = PRB_DAP_STOPPED,
    .handle = handle_step_out,
};

/* A client that pauses a stopped target waits for the event all the same. */
static bool repeat_stop(struct prb_dap_session *session)
{
    pthread_mutex_lock(&session->lock);
    json_t *stopped = session->stopped ? json_incref(session->stopped) : NULL;
    pthread_mutex_unlock(&session->lock);
    if (stopped)
        prb_dap_event(session, "stopped", stopped);
    return stopped != NULL;
}

static bool handle_pause(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                         struct prb_error *err)
{
    json_int_t thread = 0;
    (void)body_out;
    if (!prb_dap_get_integer(arguments, "threadId", &thread, err))
        return false;
    if (repeat_stop(session))
        return true;
    json_t *wanted = json_pack("{s:I}", "threadId", thread);
    json_t *answer = prb_dap_ask(session, "pause", wanted, 0, err);
    json_decref(wanted);
    json_decref(answer);
    return answer != NULL;
}

const struct prb_dap_request prb_dap_pause = {
    .command = "pause",
    .method = "pause",
    .when = PRB_DAP_ATTACHED,
    .handle = handle_pause,
};

static bool handle_goto_targets(struct prb_dap_session *session, json_t *arguments,
                                json_t **body_out, struct prb_error *err)
{
    json_int_t line = prb_dap_line_out(session, 1);
    json_t *one;
    size_t i;
    if (!prb_dap_get_integer(arguments, "line", &line, err))
        return false;
    json_t *wanted = prb_dap_source_wanted(session, prb_dap_get(arguments, "source"), err);
    if (!wanted)
        return false;
    json_object_set_new(wanted, "line", json_integer(prb_dap_line_in(session, line)));
    json_t *answer = prb_dap_ask(session, "goto_targets", wanted, 0, err);
    json_decref(wanted);
    json_array_foreach(json_object_get(answer, "targets"), i, one)
    {
        prb_dap_lines_map(session, one);
    }
    *body_out = answer;
    return answer != NULL;
}

const struct prb_dap_request prb_dap_goto_targets = {
    .command = "gotoTargets",
    .capabilities = "supportsGotoTargetsRequest",
    .method = "goto_targets",
    .when = PRB_DAP_STOPPED,
    .handle = handle_goto_targets,
};

/* The back end reports `stopped` with the reason goto, after the response. */
static bool handle_goto(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                        struct prb_error *err)
{
    json_int_t thread = 0, target = 0;
    (void)body_out;
    if (!prb_dap_get_integer(arguments, "threadId", &thread, err) ||
        !prb_dap_get_integer(arguments, "targetId", &target, err))
        return false;
    json_t *wanted = json_pack("{s:I, s:I}", "threadId", thread, "targetId", target);
    json_t *answer = prb_dap_ask(session, "goto", wanted, (pid_t)thread, err);
    json_decref(wanted);
    json_decref(answer);
    return answer != NULL;
}

const struct prb_dap_request prb_dap_goto = {
    .command = "goto",
    .method = "goto",
    .when = PRB_DAP_STOPPED,
    .handle = handle_goto,
};
