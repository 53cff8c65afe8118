/*
 * HTTP/1.1 by libwebsockets.  It gets sockets that are accepted already and speak HTTP, never listens
 * itself, and one answer ends a connection.
 */
#ifndef PRB_SERVE_HTTP_H
#define PRB_SERVE_HTTP_H

#include "serve/doors/doors.h"

struct prb_http;
/* files: as prb_work_new has them. */
struct prb_http *prb_http_new(struct prb_serve *serve, const char *const *files,
                              struct prb_error *err);
void prb_http_free(struct prb_http *http);
/* Serve in this thread until prb_http_end. */
void prb_http_run(struct prb_http *http);
/* Any thread, these two.  Takes the guest; tls: it begins with a handshake. */
void prb_http_give(struct prb_http *http, struct prb_guest *guest, bool tls);
void prb_http_end(struct prb_http *http);

#endif
