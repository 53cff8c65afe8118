/* The token is that of the address, else of PROBING_AUTH_TOKEN, else of this user's own server. */
#include "serve/client/elsewhere.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "format/format.h"
#include "serve/client/ask.h"
#include "serve/doors/doors.h"

#define LONGEST 700.0 /* s: a profile of ten minutes */

/* ---- where ---- */

struct place {
    char address[PRB_ADDRESS_TEXT];
    bool tls;
    struct prb_own_server server;
};

static bool take_place(const char *where, struct place *out, struct prb_error *err)
{
    const char *given = getenv("PROBING_AUTH_TOKEN"), *fragment = strstr(where, "#token=");
    struct prb_error none;
    out->tls = strncmp(where, "https://", 8) == 0;
    where += out->tls ? 8 : strncmp(where, "http://", 7) == 0 ? 7 : 0;
    bool path = *where == '/' || *where == '.';
    size_t len = path ? strlen(where) : strcspn(where, "/#");
    if (len >= sizeof out->address)
        return prb_fail(err, PRB_USAGE, "the address of the server is too long");
    snprintf(out->address, sizeof out->address, "%.*s", (int)len, where);
    const char *token = fragment ? fragment + strlen("#token=") : given ? given : "";
    bool own = !path && prb_doors_own(out->address, &out->server, *token ? &none : err);
    out->tls = out->tls || *out->server.pin;
    if (*token)
        snprintf(out->server.token, sizeof out->server.token, "%s", token);
    return own || *token || path;
}

/* ---- the answer ---- */

/* A server elsewhere may send anything: on a terminal it is made harmless, line by line. */
static bool print(int fd, const struct prb_buf *body)
{
    bool terminal = isatty(fd) == 1;
    if (!terminal)
        return prb_write_all(fd, body->data, body->len);
    for (size_t at = 0; at < body->len;) {
        const char *end = memchr(body->data + at, '\n', body->len - at);
        size_t len = end ? (size_t)(end - body->data) - at : body->len - at;
        PRB_AUTO_FREE char *safe = prb_text_safe(body->data + at, len, 0);
        if (!safe || !prb_write_all(fd, safe, strlen(safe)) || !prb_write_all(fd, "\n", 1))
            return false;
        at += len + 1;
    }
    return true;
}

static bool deliver(const char *output, const struct prb_buf *body, struct prb_error *err)
{
    bool file = output && strcmp(output, "-") != 0;
    PRB_AUTO_FD int fd = file ? open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)
                              : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return (fd >= 0 && print(fd, body)) ||
           prb_fail_sys(err, errno, "writing %s", file ? output : "standard output");
}

static char *question(const struct prb_elsewhere *asked)
{
    json_auto_t *body = json_object(), *words = json_array();
    for (size_t i = 0; i < asked->word_count; i++)
        json_array_append_new(words, json_string(asked->words[i]));
    json_object_set(body, "words", words);
    if (asked->pid)
        json_object_set_new(body, "pid", json_integer(strtol(asked->pid, NULL, 10)));
    if (asked->name)
        json_object_set_new(body, "name", json_string(asked->name));
    return json_dumps(body, JSON_COMPACT);
}

bool prb_elsewhere(const struct prb_elsewhere *asked, struct prb_error *err)
{
    struct place place = {0};
    PRB_AUTO(prb_buf) struct prb_buf body = {0};
    PRB_AUTO_FREE char *text = question(asked);
    if (!text)
        return prb_fail(err, PRB_USAGE, "a word is not UTF-8");
    if (!take_place(asked->where, &place, err))
        return false;
    const struct prb_ask ask = {.address = place.address,
                                .tls = place.tls,
                                .pin = *place.server.pin ? place.server.pin : NULL,
                                .token = place.server.token,
                                .method = "POST",
                                .path = "/api/v1/command",
                                .accept = "text/plain",
                                .body = text,
                                .seconds = LONGEST};
    bool ok = prb_ask(&ask, &body, err);
    explicit_bzero(&place, sizeof place);
    return ok && deliver(asked->output, &body, err);
}

/* ---- second tokens ---- */

#define TOKENS "/api/v1/tokens"

static bool ask_own(const char *method, const char *route, const char *body, double seconds,
                    struct prb_buf *out, struct prb_error *err)
{
    char folder[96], path[128];
    if (!prb_serve_folder(folder, sizeof folder, err))
        return false;
    snprintf(path, sizeof path, "%s/serve.sock", folder);
    const struct prb_ask ask = {
        .address = path, .method = method, .path = route, .body = body, .seconds = seconds};
    return prb_ask(&ask, out, err);
}

bool prb_second_url(const char *allow, char *out, size_t size, struct prb_error *err)
{
    char url[400];
    PRB_AUTO(prb_buf) struct prb_buf answer = {0};
    if (!prb_doors_url(url, sizeof url, err))
        return false;
    json_auto_t *wanted = json_pack("{s:s}", "allow", allow);
    PRB_AUTO_FREE char *body = wanted ? json_dumps(wanted, JSON_COMPACT) : NULL;
    if (!body)
        return prb_nomem(err);
    if (strncmp(url, "http", 4) != 0) /* the Unix socket alone: for a page that a proxy shows */
        *url = '\0';
    if (!ask_own("POST", TOKENS, body, 10, &answer, err))
        return false;
    json_auto_t *told = json_loadb(answer.data, answer.len, 0, NULL);
    const char *token = json_string_value(json_object_get(told, "token"));
    url[strcspn(url, "#")] = '\0';
    snprintf(out, size, "%s#token=%s", url, token ? token : "");
    explicit_bzero(answer.data, answer.len);
    return token || prb_fail(err, PRB_CORRUPT, "the server gave no token");
}

bool prb_second_revoke(int *count, struct prb_error *err)
{
    char url[400];
    PRB_AUTO(prb_buf) struct prb_buf answer = {0};
    if (!prb_doors_url(url, sizeof url, err) || !ask_own("DELETE", TOKENS, NULL, 10, &answer, err))
        return false;
    json_auto_t *told = json_loadb(answer.data, answer.len, 0, NULL);
    *count = (int)json_integer_value(json_object_get(told, "ended"));
    return true;
}

/* ---- the host's agent ---- */

#define AGENT "/api/v1/agent"

bool prb_server_attach(const char *wanted, int *pid, bool *already, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf body = {0}, answer = {0};
    prb_buf_addf(&body, "{\"agent\": %s}", wanted);
    if (!body.data)
        return prb_nomem(err);
    if (!ask_own("POST", AGENT, body.data, 60, &answer, err))
        return false;
    json_auto_t *told = json_loadb(answer.data, answer.len, 0, NULL);
    *pid = (int)json_integer_value(json_object_get(told, "pid"));
    *already = json_is_true(json_object_get(told, "already"));
    return true;
}

bool prb_server_detach(bool *was, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf answer = {0};
    if (!ask_own("DELETE", AGENT, NULL, 20, &answer, err))
        return false;
    json_auto_t *told = json_loadb(answer.data, answer.len, 0, NULL);
    *was = json_is_true(json_object_get(told, "ended"));
    return true;
}

/* ---- servers of their own ---- */

bool prb_join(const char *text, int pid, char *out, size_t size, int *pid_out,
              struct prb_error *err)
{
    struct prb_address address;
    char folder[96], path[128], body[40], place[PRB_ADDRESS_TEXT];
    struct prb_own_server server;
    PRB_AUTO(prb_buf) struct prb_buf answer = {0};
    if (!prb_address_parse(text, &address, err) || !prb_serve_folder(folder, sizeof folder, err) ||
        !prb_serve_socket(folder, &address, path, sizeof path, err))
        return false;
    if (access(path, F_OK) != 0)
        return prb_fail(err, PRB_NOT_FOUND, "no server is at %s", text);
    snprintf(body, sizeof body, "{\"pid\": %d}", pid);
    const struct prb_ask ask = {
        .address = path, .method = "POST", .path = "/api/v1/targets", .body = body, .seconds = 10};
    prb_address_print(&address, place);
    if (!prb_ask(&ask, &answer, err) || !prb_doors_own(place, &server, err))
        return false;
    snprintf(out, size, "%s://%s/#token=%s", *server.pin ? "https" : "http", place, server.token);
    *pid_out = server.pid;
    explicit_bzero(&server, sizeof server);
    return true;
}
