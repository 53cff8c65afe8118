/* What a request of HTTP says: its headers, path and parameters, out of libwebsockets. */
#ifndef PRB_SERVE_HTTP_REQUEST_H
#define PRB_SERVE_HTTP_REQUEST_H

#include <libwebsockets.h>

#include "serve/doors/access.h"
#include "serve/http/route.h"

/* A header into out; "": it has none.  False: it does not fit, or has it more than once. */
bool prb_request_header(struct lws *wsi, enum lws_token_indexes token, char *out, size_t size);
/* What the guest shows of himself. */
bool prb_request_shown(struct lws *wsi, struct prb_guest *guest, struct prb_shown *out,
                       struct prb_error *err);
/* Bytes of the body, 0: none is announced. */
bool prb_request_length(struct lws *wsi, size_t *out, int *status, struct prb_error *err);
/* Method and path into question; head: the answer is wanted without its body. */
bool prb_request_method(struct lws *wsi, struct prb_question *question, bool *head, int *status,
                        struct prb_error *err);
bool prb_request_query(struct lws *wsi, struct prb_question *question, struct prb_error *err);
/* What is wanted and known: forms, the entity tag, the headers of MCP. */
void prb_request_rest(struct lws *wsi, const struct prb_serve *serve,
                      struct prb_question *question);
/* Probing-Errors: 200: the status of an error is wanted in Probing-Status alone.  A browser writes
 * each other one on its console, also of an error that its page expects and shows. */
bool prb_request_hides_status(struct lws *wsi);

#endif
