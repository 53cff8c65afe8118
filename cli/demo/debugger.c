/* The demo's debugger: a client of `probing dap`, as an editor is. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "cli/demo/demo.h"
#include "cli/print/out.h"

#define MESSAGE_MAX (4u << 20)
#define HEAD_MAX 200
#define FRAMES_SHOWN 3
#define VARIABLES_SHOWN 8
#define BREAKPOINT "loss += error * error" /* the line's text in job.py */

PRB_DEFINE_AUTO_PTR(json, json_t, json_decref)

struct session {
    const struct prb_demo *demo;
    int in, out; /* of the adapter: what we write to, what we read from */
    json_int_t seq;
    json_t *events; /* those that came while an answer was awaited */
};

static void end_session(struct session *session)
{
    if (session->in >= 0)
        close(session->in);
    if (session->out >= 0)
        close(session->out);
    json_decref(session->events);
}
PRB_DEFINE_AUTO(session, struct session, end_session)

static bool odd(struct prb_error *err, const char *what)
{
    return prb_cli_fail(err, PRB_INTERNAL, "", "the debug adapter: %s", what);
}

/* ---- messages ---- */

static bool read_bytes(struct session *session, char *to, size_t len, struct prb_error *err)
{
    for (size_t have = 0; have < len;) {
        if (!prb_demo_await(session->demo, session->out, "the debugger", err))
            return false;
        ssize_t got = read(session->out, to + have, len - have);
        if (got <= 0)
            return odd(err, "it ended");
        have += (size_t)got;
    }
    return true;
}

static json_t *read_message(struct session *session, struct prb_error *err)
{
    char head[HEAD_MAX + 1] = "";
    for (size_t len = 0; !strstr(head, "\r\n\r\n"); len++)
        if (len >= HEAD_MAX)
            return odd(err, "no message"), NULL;
        else if (!read_bytes(session, head + len, 1, err))
            return NULL;
    unsigned long size = 0;
    if (sscanf(head, "Content-Length: %lu", &size) != 1 || !size || size > MESSAGE_MAX)
        return odd(err, "a message without its length"), NULL;
    PRB_AUTO_FREE char *text = malloc(size);
    if (!text || !read_bytes(session, text, size, err))
        return NULL;
    json_t *message = json_loadb(text, size, 0, NULL);
    if (!message)
        odd(err, "a message is not JSON");
    return message;
}

static bool send_request(struct session *session, const char *command, json_t *arguments,
                         struct prb_error *err)
{
    PRB_AUTO(json)
    json_t *message = json_pack("{sI, ss, ss, so}", "seq", ++session->seq, "type", "request",
                                "command", command, "arguments", arguments);
    PRB_AUTO_FREE char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    if (!text)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    return dprintf(session->in, "Content-Length: %zu\r\n\r\n%s", strlen(text), text) > 0 ||
           odd(err, strerror(errno));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The next message, owned by the caller; events are kept, and a request that failed ends it all. */
static json_t *next_message(struct session *session, struct prb_error *err)
{
    json_t *message = read_message(session, err);
    const char *kind = text_of(message, "type");
    if (strcmp(kind, "event") == 0)
        json_array_append(session->events, message);
    if (strcmp(kind, "response") != 0 || json_is_true(json_object_get(message, "success")))
        return message;
    prb_cli_fail(err, PRB_UNSUPPORTED, "", "the debugger cannot %s: %s",
                 text_of(message, "command"), text_of(message, "message"));
    json_decref(message);
    return NULL;
}

/* Read until the answer to request seq is there; *body_out, owned by the caller, unless NULL. */
static bool await_answer(struct session *session, json_int_t seq, json_t **body_out,
                         struct prb_error *err)
{
    for (;;) {
        PRB_AUTO(json) json_t *message = next_message(session, err);
        if (!message)
            return false;
        if (json_integer_value(json_object_get(message, "request_seq")) != seq)
            continue;
        if (body_out)
            *body_out = json_incref(json_object_get(message, "body"));
        return true;
    }
}

static bool ask(struct session *session, const char *command, json_t *arguments, json_t **body_out,
                struct prb_error *err)
{
    return send_request(session, command, arguments, err) &&
           await_answer(session, session->seq, body_out, err);
}

/* The first event of that name; borrowed. */
static const json_t *await_event(struct session *session, const char *name, struct prb_error *err)
{
    for (size_t seen = 0;; seen++) {
        while (seen >= json_array_size(session->events)) {
            PRB_AUTO(json) json_t *message = next_message(session, err);
            if (!message)
                return NULL;
        }
        const json_t *event = json_array_get(session->events, seen);
        if (strcmp(text_of(event, "event"), name) == 0)
            return event;
    }
}

/* ---- what is shown ---- */

static void print_frames(const json_t *frames)
{
    size_t at;
    json_t *frame;
    json_array_foreach(frames, at, frame)
    {
        const char *path = text_of(json_object_get(frame, "source"), "path");
        const char *file = strrchr(path, '/');
        if (at >= FRAMES_SHOWN)
            break;
        fputs(at ? "    called by " : "stopped at a breakpoint in ", stdout);
        prb_out_text(stdout, text_of(frame, "name"));
        fputs(" (", stdout);
        prb_out_text(stdout, file ? file + 1 : path);
        printf(":%d)\n", (int)json_integer_value(json_object_get(frame, "line")));
    }
}

static void print_variables(const json_t *variables)
{
    size_t at, shown = 0;
    json_t *variable;
    json_array_foreach(variables, at, variable)
    {
        const char *value = text_of(variable, "value");
        if (strstr(text_of(variable, "name"), " variables") || shown++ >= VARIABLES_SHOWN)
            continue;
        fputs("    ", stdout);
        prb_out_text(stdout, text_of(variable, "name"));
        fputs(" = ", stdout);
        prb_out_cut(stdout, value, strlen(value), 60);
        fputs("\n", stdout);
    }
}

static json_t *number(const char *name, json_int_t value) { return json_pack("{sI}", name, value); }

static bool show_stop(struct session *session, json_int_t thread, struct prb_error *err)
{
    PRB_AUTO(json) json_t *stack = NULL;
    PRB_AUTO(json) json_t *scopes = NULL;
    PRB_AUTO(json) json_t *variables = NULL;
    if (!ask(session, "stackTrace", number("threadId", thread), &stack, err))
        return false;
    const json_t *frames = json_object_get(stack, "stackFrames");
    json_int_t frame = json_integer_value(json_object_get(json_array_get(frames, 0), "id"));
    print_frames(frames);
    if (!ask(session, "scopes", number("frameId", frame), &scopes, err))
        return false;
    const json_t *scope = json_array_get(json_object_get(scopes, "scopes"), 0);
    json_int_t locals = json_integer_value(json_object_get(scope, "variablesReference"));
    if (!ask(session, "variables", number("variablesReference", locals), &variables, err))
        return false;
    print_variables(json_object_get(variables, "variables"));
    return true;
}

/* ---- the session ---- */

/* Of the line with that text, from 1; 0: there is none. */
static int line_of(const char *script, const char *text)
{
    PRB_AUTO(file) FILE *file = fopen(script, "re");
    char line[400];
    for (int number_of = 1; file && fgets(line, sizeof line, file); number_of++)
        if (strstr(line, text))
            return number_of;
    return 0;
}

static json_int_t stopped_thread(const json_t *event)
{
    return json_integer_value(json_object_get(json_object_get(event, "body"), "threadId"));
}

static bool converse(struct session *session, struct prb_error *err)
{
    const struct prb_demo *demo = session->demo;
    PRB_AUTO(json) json_t *verified = NULL;
    int line = line_of(demo->script, BREAKPOINT);
    if (!ask(session, "initialize", json_pack("{ss}", "adapterID", "probing"), NULL, err) ||
        !send_request(session, "attach", number("processId", demo->job), err))
        return false;
    if (!await_event(session, "initialized", err) ||
        !ask(session, "setBreakpoints",
             json_pack("{s{ss}, s[{si}]}", "source", "path", demo->script, "breakpoints", "line",
                       line),
             &verified, err) ||
        !ask(session, "configurationDone", json_object(), NULL, err))
        return false;
    const json_t *stop = await_event(session, "stopped", err);
    return stop && show_stop(session, stopped_thread(stop), err) &&
           ask(session, "disconnect", json_object(), NULL, err);
}

bool prb_demo_debug(const struct prb_demo *demo, struct prb_error *err)
{
    const char *const words[] = {"/proc/self/exe", "dap", NULL};
    int to[2], from[2], status;
    if (pipe2(to, O_CLOEXEC) != 0)
        return odd(err, strerror(errno));
    PRB_AUTO(session)
    struct session session = {.demo = demo, .in = to[1], .out = -1, .events = json_array()};
    PRB_AUTO_FD int theirs = to[0];
    if (pipe2(from, O_CLOEXEC) != 0)
        return odd(err, strerror(errno));
    session.out = from[0];
    pid_t adapter = prb_demo_start(demo, words, theirs, from[1], true, err);
    close(from[1]);
    if (adapter < 0 || !converse(&session, err))
        return false;
    close(session.in);
    session.in = -1;
    return prb_demo_await_end(demo, adapter, "the debug adapter", &status, err);
}
