/* Each header is copied with its bound; what does not fit is refused, never cut. */
#include "serve/http/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define URL_MAX 4096

bool prb_request_header(struct lws *wsi, enum lws_token_indexes token, char *out, size_t size)
{
    *out = '\0';
    int len = lws_hdr_total_length(wsi, token);
    return len <= 0 || (len < (int)size && lws_hdr_copy(wsi, out, (int)size, token) >= 0);
}

/* One that libwebsockets has no number for; name ends with a colon. */
static bool header_named(struct lws *wsi, const char *name, char *out, size_t size)
{
    *out = '\0';
    int len = lws_hdr_custom_length(wsi, name, (int)strlen(name));
    return len <= 0 || (len < (int)size &&
                        lws_hdr_custom_copy(wsi, out, (int)size, name, (int)strlen(name)) >= 0);
}

static bool is_proxied(struct lws *wsi)
{
    static const char *const names[] = {
        "sec-fetch-site:",   "sec-fetch-mode:",    "sec-fetch-dest:",   "forwarded:",
        "x-forwarded-host:", "x-forwarded-proto:", "x-forwarded-port:", "x-forwarded-prefix:"};
    if (lws_hdr_total_length(wsi, WSI_TOKEN_ORIGIN) > 0 ||
        lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_VIA) > 0 ||
        lws_hdr_total_length(wsi, WSI_TOKEN_X_FORWARDED_FOR) > 0 ||
        lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_X_REAL_IP) > 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (lws_hdr_custom_length(wsi, names[i], (int)strlen(names[i])) >= 0)
            return true;
    return false;
}

/* The token that it shows; "": none. */
static bool take_shown_token(struct lws *wsi, char *out, size_t size)
{
    char text[256];
    if (!prb_request_header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION, text, sizeof text))
        return false;
    const char *token = strncasecmp(text, "bearer ", 7) == 0 ? text + 7 : "";
    token += strspn(token, " ");
    if (!*token) {
        if (!header_named(wsi, "x-probing-token:", text, sizeof text))
            return false;
        token = text;
    }
    snprintf(out, size, "%.*s", (int)(size - 1), token);
    explicit_bzero(text, sizeof text);
    return true;
}

bool prb_request_shown(struct lws *wsi, struct prb_guest *guest, struct prb_shown *out,
                       struct prb_error *err)
{
    *out = (struct prb_shown){.guest = guest, .proxied = is_proxied(wsi)};
    return (prb_request_header(wsi, WSI_TOKEN_HOST, out->host, sizeof out->host) &&
            prb_request_header(wsi, WSI_TOKEN_ORIGIN, out->origin, sizeof out->origin) &&
            header_named(wsi, "sec-fetch-site:", out->site, sizeof out->site) &&
            take_shown_token(wsi, out->token, sizeof out->token)) ||
           prb_fail(err, PRB_USAGE, "a header is too long");
}

bool prb_request_query(struct lws *wsi, struct prb_question *question, struct prb_error *err)
{
    char text[URL_MAX];
    for (int i = 0;; i++) {
        int len = lws_hdr_copy_fragment(wsi, text, sizeof text, WSI_TOKEN_HTTP_URI_ARGS, i);
        if (len < 0)
            return true;
        if (!len)
            continue;
        if (question->query_count == PRB_QUERY_MAX)
            return prb_fail(err, PRB_USAGE, "more than %d parameters", PRB_QUERY_MAX);
        char *equals = strchr(text, '=');
        if (equals)
            *equals = '\0';
        struct prb_parameter *one = question->query + question->query_count++;
        one->name = strdup(text);
        one->value = strdup(equals ? equals + 1 : "");
        if (!one->name || !one->value)
            return prb_nomem(err);
    }
}

/* RFC 9110 section 8.6: digits alone. */
bool prb_request_length(struct lws *wsi, size_t *out, int *status, struct prb_error *err)
{
    char text[32];
    if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0) {
        *status = 501;
        return prb_fail(err, PRB_UNSUPPORTED, "a body needs its length: no Transfer-Encoding here");
    }
    int len = lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH);
    if (len <= 0)
        return true;
    bool fits = prb_request_header(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH, text, sizeof text);
    if (!fits || strspn(text, "0123456789") != strlen(text) || strlen(text) > 15)
        return prb_fail(err, PRB_USAGE, "Content-Length is not valid");
    size_t length = strtoul(text, NULL, 10);
    if (length <= PRB_SERVE_BODY_MAX) {
        *out = length;
        return true;
    }
    *status = 413;
    return prb_fail(err, PRB_USAGE, "a body has at most %u bytes", PRB_SERVE_BODY_MAX);
}

bool prb_request_method(struct lws *wsi, struct prb_question *question, bool *head, int *status,
                        struct prb_error *err)
{
    static const unsigned methods[] = {[LWSHUMETH_GET] = PRB_GET,
                                       [LWSHUMETH_POST] = PRB_POST,
                                       [LWSHUMETH_PUT] = PRB_PUT,
                                       [LWSHUMETH_DELETE] = PRB_DELETE,
                                       [LWSHUMETH_HEAD] = PRB_GET};
    char *uri = NULL;
    int len = 0, method = lws_http_get_uri_and_method(wsi, &uri, &len);
    if (method == LWSHUMETH_OPTIONS) { /* a browser asks for another page: no */
        *status = 403;
        return prb_fail(err, PRB_PERMISSION, "no other page may ask this server");
    }
    bool known = method >= 0 && method < (int)(sizeof methods / sizeof *methods);
    question->method = known ? methods[method] : 0; /* which no route has */
    *head = method == LWSHUMETH_HEAD;
    if (len <= 0 || len >= URL_MAX || *uri != '/' || memchr(uri, '\0', (size_t)len))
        return prb_fail(err, PRB_USAGE, "the path is not valid");
    question->path = strndup(uri, (size_t)len);
    return question->path || prb_nomem(err);
}

static char *copy_header(struct lws *wsi, enum lws_token_indexes token)
{
    char text[1024];
    return prb_request_header(wsi, token, text, sizeof text) && *text ? strdup(text) : NULL;
}

/* RFC 9110 section 12.5.3; what weighs 0 is not wanted. */
static bool takes_gzip(struct lws *wsi)
{
    char text[256];
    if (!prb_request_header(wsi, WSI_TOKEN_HTTP_ACCEPT_ENCODING, text, sizeof text))
        return false;
    const char *gzip = strstr(text, "gzip");
    return gzip && strncmp(gzip, "gzip;q=0", 8) != 0;
}

/* What the Model Context Protocol says in headers; one that is too long is told from every name. */
static void take_mcp(struct lws *wsi, const struct prb_serve *serve, struct prb_question *question)
{
    static const char *const names[] = {"mcp-protocol-version:", "mcp-method:", "mcp-name:"};
    char origin[256], host[256];
    for (size_t i = 0; i < 3; i++)
        if (!header_named(wsi, names[i], question->mcp[i], sizeof question->mcp[i]))
            snprintf(question->mcp[i], sizeof question->mcp[i], "?");
    bool readable = prb_request_header(wsi, WSI_TOKEN_ORIGIN, origin, sizeof origin) &&
                    prb_request_header(wsi, WSI_TOKEN_HOST, host, sizeof host);
    question->foreign = !readable || !prb_access_origin(serve, origin, host);
}

void prb_request_rest(struct lws *wsi, const struct prb_serve *serve, struct prb_question *question)
{
    question->accept = copy_header(wsi, WSI_TOKEN_HTTP_ACCEPT);
    question->content_type = copy_header(wsi, WSI_TOKEN_HTTP_CONTENT_TYPE);
    question->takes_gzip = takes_gzip(wsi);
    if (!prb_request_header(wsi, WSI_TOKEN_HTTP_IF_NONE_MATCH, question->known,
                            sizeof question->known))
        question->known[0] = '\0';
    take_mcp(wsi, serve, question);
}

bool prb_request_hides_status(struct lws *wsi)
{
    char value[8];
    return header_named(wsi, "probing-errors:", value, sizeof value) && strcmp(value, "200") == 0;
}
