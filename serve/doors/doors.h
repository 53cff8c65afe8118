/*
 * How clients come in: a Unix socket in the user's runtime folder, and TCP.  One thread accepts, and
 * looks at the first bytes of each connection without taking them (recv(2), MSG_PEEK).
 */
#ifndef PRB_SERVE_DOORS_H
#define PRB_SERVE_DOORS_H

#include "serve/doors/certificate.h"
#include "serve/doors/guests.h"

/* ---- first bytes ---- */

enum prb_first_bytes {
    PRB_FIRST_WAIT, /* may still be either */
    PRB_FIRST_HTTP,
    PRB_FIRST_TEXT,
    PRB_FIRST_TLS,
    PRB_FIRST_CLOSE, /* control characters, what a proxy is asked */
};
/* What a connection speaks that has sent these bytes; more: others may follow. */
enum prb_first_bytes prb_first_bytes(const char *bytes, size_t count);

/* ---- places ---- */

/* The folder of the user's sockets, made: $XDG_RUNTIME_DIR/probing or /tmp/probing-UID, 0700.
 * PERMISSION: it is another user's. */
bool prb_serve_folder(char *out, size_t size, struct prb_error *err);

/* The Unix socket of a server in that folder: of the one for all of the user's processes, or with
 * own of that for some, at this address. */
bool prb_serve_socket(const char *folder, const struct prb_address *own, char *out, size_t size,
                      struct prb_error *err);

/* Each open door; -1: it is not. */
struct prb_doors {
    int local, tcp;
    int lock; /* of one server a user */
    char local_path[128];
    char file_path[160]; /* serve-PID.json */
    char token_path[160];
};
/* serve->token, from options->token_file, PROBING_AUTH_TOKEN, or made; none where there is no TCP or
 * --no-token.  Before anything listens; may wait where the file is a pipe. */
bool prb_doors_token(struct prb_serve *serve, struct prb_error *err) PRB_MUST_CHECK;
/* Open them, write the token's file and what says where the server is.  BUSY: this user's server
 * runs already; err's remedy is its address with the token. */
bool prb_doors_open(struct prb_serve *serve, struct prb_doors *out, struct prb_error *err);
/* Of servers for some processes one begins at a time: the others wait here, and find what it has made.  A
 * descriptor, which the caller closes when its doors are open; -1: there is none.  Before any thread. */
int prb_doors_turn(void);
/* Close them and remove their files. */
void prb_doors_close(struct prb_doors *doors);
/* "http://127.0.0.1:3344/#token=…" of this user's running server.  NOT_FOUND: none runs. */
bool prb_doors_url(char *out, size_t size, struct prb_error *err);
/* The same of each of his servers for some processes.  How many there are. */
size_t prb_doors_own_urls(void (*each)(const char *url));
/* How this user's server at an address, "HOST:PORT", is asked.  NOT_FOUND: none of his runs there. */
struct prb_own_server {
    int pid;
    char token[160];               /* "": it needs none */
    char pin[PRB_CERTIFICATE_PIN]; /* of its certificate; "": it has no TLS */
};
bool prb_doors_own(const char *address, struct prb_own_server *out, struct prb_error *err);

/* ---- the doorman ---- */

/* Take connections until options->stop_fd can be read; each is given, non-blocking, with what it
 * speaks: HTTP, TEXT or TLS, which with a certificate is all that TCP carries.  The callee frees
 * the guest. */
typedef void prb_door_fn(void *context, struct prb_guest *guest, enum prb_first_bytes speaks);
void prb_doors_run(const struct prb_serve *serve, const struct prb_doors *doors, prb_door_fn *give,
                   void *context);

#endif
