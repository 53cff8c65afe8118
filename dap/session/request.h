/*
 * Requests of the client: one struct prb_dap_request for each; and what a handler may do.
 *
 * A session has a reader (parses messages, carries out cancel), a worker that runs handlers one
 * after the other, a second worker for what need not wait while the first is busy (queue.h), and a
 * writer with a bounded queue.  Every request is answered exactly once; events that a handler raises follow its response.
 *
 * To add a request: `const struct prb_dap_request prb_dap_NAME = {...}` in the file of its subject, or
 * in a new file that DAP_REQUESTS (dap/requests/local.mk) lists.  The build finds it there.  If it
 * has a method and capabilities, the client gets those where the back end has the method:
 *   live      a line in inject/probe/debug/methods.def and its function in debug/agent/
 *   readonly  a prb_dap_readonly_method and a line in backend/readonly/readonly.c
 * Its test goes into tests/dap/, by subject.
 */
#ifndef PRB_DAP_REQUEST_H
#define PRB_DAP_REQUEST_H

#include "dap/backend/backend.h"

struct prb_dap_session;

enum prb_dap_when {
    PRB_DAP_ALWAYS = 0,
    PRB_DAP_ATTACHED = 1 << 0, /* refused before attach or launch */
    PRB_DAP_STOPPED = 1 << 1,  /* refused with "notStopped" while the target runs */
    /* may take long: the target's events do not wait for its response */
    PRB_DAP_RUNS_CODE = 1 << 2,
    PRB_DAP_BEFORE = 1 << 3, /* also before initialize */
    /* changes nothing and runs no code of the target: does not wait for a request that does, and
     * takes long */
    PRB_DAP_LOOKS = 1 << 4,
};

struct prb_dap_request {
    const char *command;      /* "stackTrace" */
    const char *capabilities; /* "supportsGotoTargetsRequest", several with spaces, or NULL */
    void (*more)(json_t *capabilities); /* adds others than true; or NULL */
    const char *method;                 /* that the back end must have, or NULL */
    const char *setting;                /* of attach that must be true, or NULL */
    unsigned when;
    /* arguments: an object, never NULL, borrowed.  *body_out: a new reference or left NULL.
     * False: err is the response's message. */
    bool (*handle)(struct prb_dap_session *session, json_t *arguments, json_t **body_out,
                   struct prb_error *err);
};

/*
 * Members of a message of the client, checked.  Absent and null mean the default, which stays in
 * *out (clients send null for what they leave out).  Another type is an error that names the
 * member.
 */
/* Of any type; NULL: absent or null. */
json_t *prb_dap_get(const json_t *arguments, const char *key);
bool prb_dap_get_string(const json_t *arguments, const char *key, const char **out,
                        struct prb_error *err);
bool prb_dap_get_integer(const json_t *arguments, const char *key, json_int_t *out,
                         struct prb_error *err);
bool prb_dap_get_flag(const json_t *arguments, const char *key, bool *out, struct prb_error *err);

/* NULL before attach. */
struct prb_dap_backend *prb_dap_session_backend(struct prb_dap_session *session);
/* Queue an event, sent after the response of the request that this thread handles.  Takes body. */
void prb_dap_event(struct prb_dap_session *session, const char *event, json_t *body);
/* Call a method of the back end; cancelled when the client cancels the request or leaves. */
json_t *prb_dap_ask(struct prb_dap_session *session, const char *method, json_t *arguments,
                    pid_t thread, struct prb_error *err) PRB_MUST_CHECK;
/* client/sources.c: lines and columns as the client counts them (linesStartAt1, columnsStartAt1),
 * to numbers from 1 (_in) and back (_out). */
json_int_t prb_dap_line_in(const struct prb_dap_session *session, json_int_t line);
json_int_t prb_dap_line_out(const struct prb_dap_session *session, json_int_t line);
json_int_t prb_dap_column_in(const struct prb_dap_session *session, json_int_t column);
json_int_t prb_dap_column_out(const struct prb_dap_session *session, json_int_t column);

#define R(name) extern const struct prb_dap_request prb_dap_##name;
#include "dap/requests/requests.inc"
#undef R
/* All of them; ends with NULL. */
extern const struct prb_dap_request *const prb_dap_requests[];

#endif
