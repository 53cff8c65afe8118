/*
 * The Debug Adapter Protocol server (spec 1.71).  Any client debugs a live Python process through
 * the probe, or reads a process without the probe, a core or a snapshot.  Command line: cli/debug/.
 */
#ifndef PRB_DAP_DAP_H
#define PRB_DAP_DAP_H

#include "probing.h"

/* Serve one client on two descriptors until it leaves; its `attach` names the target.  in and out
 * are not closed. */
PRB_API bool prb_dap_serve(int in, int out, struct prb_error *err);
/* The same for one process, whose `attach` need not name it. */
PRB_API bool prb_dap_serve_process(int in, int out, pid_t pid, struct prb_error *err);

#define PRB_DAP_TOKEN_MIN 16 /* characters of a token */

struct prb_dap_listen_options {
    /* "HOST:PORT", "[V6]:PORT" (port 0: any), or the path of a Unix socket (made 0600) */
    const char *address;
    /* "HOST:PORT" at which clients reach it, where a tunnel leads to address; NULL: there */
    const char *reached;
    /* that every client must show.  NULL: on TCP a token is made; on loopback a client that the
     * kernel proves to belong to our user or the target's needs no token.  A Unix socket lets in
     * only such clients */
    const char *token;
    /* on loopback, any user of this machine needs no token: for port forwarders */
    bool any_user;
    pid_t pid;        /* the target, with its children and ranks; 0: what `attach` names */
    const char *file; /* the same: a core or snapshot */
    /* pid is only read, without the probe, and shown as it is when a client comes */
    bool look;
    bool pause;          /* stop pid until a client lets it run */
    double resume_after; /* s until it runs again if no client came; 0: never */
    bool once;           /* end with the first client */
    int stop_fd;         /* readable: end; -1: none */
    /* a signalfd(2); readable: pause pid for its client, or for the next; -1: none */
    int pause_fd;
    /* The server listens, and pid is stopped if `pause` is set.  address: with the real port; made:
     * the token that was made, or NULL. */
    void (*ready)(void *context, const char *address, const char *made);
    /* One line for people about what happens. */
    void (*note)(void *context, const char *text);
    void *context;
};

/* Serve until the target ends or stop_fd is readable; the target is then as before.  USAGE: no
 * address, a token that is too short, or any_user with an address that is not loopback. */
PRB_API bool prb_dap_listen(const struct prb_dap_listen_options *options, struct prb_error *err);

#endif
