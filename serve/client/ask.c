/* HTTP/1.1, RFC 9112, as far as our own server speaks it: one answer with its length, then the end. */
#include "serve/client/ask.h"

#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "serve/client/wire.h"

#define ANSWER_MAX (65u << 20)

/* ---- the question ---- */

static bool is_header_text(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == 0x7f)
            return false;
    return true;
}

static bool write_question(const struct prb_ask *ask, struct prb_buf *out, struct prb_error *err)
{
    bool token = ask->token && *ask->token;
    if ((token && !is_header_text(ask->token)) || !is_header_text(ask->path))
        return prb_fail(err, PRB_USAGE, "the token has a character that none has");
    prb_buf_addf(out, "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n", ask->method, ask->path,
                 ask->accept ? ask->accept : "application/json");
    if (token)
        prb_buf_addf(out, "Authorization: Bearer %s\r\n", ask->token);
    if (ask->body)
        prb_buf_addf(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                     strlen(ask->body));
    prb_buf_addf(out, "\r\n%s", ask->body ? ask->body : "");
    return prb_buf_ok(out) || prb_nomem(err);
}

/* ---- the answer ---- */

/* The number behind a header's name, or -1. */
static long long header_number(const char *head, const char *name)
{
    const char *at = strcasestr(head, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : -1;
}

static enum prb_code code_named(const char *name)
{
    static const enum prb_code codes[] = {
#define CODE(code, text, exit_code) PRB_##code,
        PRB_CODES(CODE)
#undef CODE
    };
    for (size_t i = 0; name && i < sizeof codes / sizeof *codes; i++)
        if (strcmp(prb_code_name(codes[i]), name) == 0)
            return codes[i];
    return PRB_INTERNAL;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool take_error(int status, const char *body, size_t len, struct prb_error *err)
{
    json_t *told = json_loadb(body, len, 0, NULL);
    const json_t *error = json_object_get(told, "error");
    enum prb_code code = code_named(text_of(error, "code"));
    if (error && code != PRB_OK) {
        prb_fail(err, code, "%s", text_of(error, "message"));
        prb_error_remedy(err, "%s", text_of(error, "remedy"));
    } else {
        prb_fail(err, PRB_CORRUPT, "the server answers with status %d", status);
    }
    json_decref(told);
    return false;
}

static bool take_answer(const struct prb_buf *bytes, struct prb_buf *out, struct prb_error *err)
{
    const char *end = bytes->len ? memmem(bytes->data, bytes->len, "\r\n\r\n", 4) : NULL;
    int status = 0;
    if (!end || sscanf(bytes->data, "HTTP/1.1 %d", &status) != 1)
        return prb_fail(err, PRB_CORRUPT, "no server of Probing answers there");
    size_t head = (size_t)(end - bytes->data) + 4, len = bytes->len - head;
    PRB_AUTO_FREE char *headers = strndup(bytes->data, head);
    long long whole = headers ? header_number(headers, "\r\ncontent-length:") : -1;
    if (whole < 0 || (unsigned long long)whole != len)
        return prb_fail(err, PRB_CORRUPT, "the server's answer is cut short");
    if (status != 200)
        return take_error(status, bytes->data + head, len, err);
    prb_buf_add(out, bytes->data + head, len);
    return prb_buf_ok(out) || prb_nomem(err);
}

bool prb_ask(const struct prb_ask *ask, struct prb_buf *body, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf question = {0}, answer = {0};
    double until = prb_clock_s() + ask->seconds;
    if (!write_question(ask, &question, err))
        return false;
    PRB_AUTO(prb_wire)
    struct prb_wire *wire =
        prb_wire_open(ask->address, ask->tls ? ask->pin ? ask->pin : "" : NULL, until, err);
    bool ok = wire && prb_wire_send(wire, &question, until, err) &&
              prb_wire_receive(wire, &answer, ANSWER_MAX, until, err);
    explicit_bzero(question.data, question.len);
    return ok && take_answer(&answer, body, err);
}
