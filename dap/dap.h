/*
 * The Debug Adapter Protocol server (spec 1.71): any client debugs a live Python process through
 * the probe, looks at one without, or at a core or snapshot.  Command line: cli/debug/.
 */
#ifndef PRB_DAP_DAP_H
#define PRB_DAP_DAP_H

#include "probing.h"

/* Serve one client on two descriptors until it leaves; `attach` says what it is about.  in and
 * out stay the caller's. */
PRB_API bool prb_dap_serve(int in, int out, struct prb_error *err);

#define PRB_DAP_TOKEN_MIN 16 /* characters of a token */

struct prb_dap_listen_options {
    /* "HOST:PORT", "[V6]:PORT" (port 0: any), or the path of a Unix socket (made 0600) */
    const char *address;
    /* that every client must show.  NULL: on TCP one is made, which on loopback a client does
     * without that the kernel proves to be of this user or of the target's; through a Unix
     * socket only such clients come in */
    const char *token;
    /* on loopback let everybody on this machine in without a token: for port forwarders */
    bool any_user;
    pid_t pid;        /* what is debugged, with its children and ranks; 0: what `attach` says */
    const char *file; /* the same: a core or snapshot */
    /* pid is only looked at, without the probe, and shown as it stood when a client comes */
    bool look;
    bool pause;          /* pid stands until a client lets it go on */
    double resume_after; /* s until it goes on when no client came; 0: never by itself */
    bool once;           /* end with the first client */
    int stop_fd;         /* readable: end; -1: none */
    /* a signalfd(2); readable: pid is paused for the client that has it, or the next; -1: none */
    int pause_fd;
    /* It listens, and pid stands when it is to: where, with the real port; made: the token that
     * was made, or NULL. */
    void (*ready)(void *context, const char *address, const char *made);
    /* One line about what happens, for people. */
    void (*note)(void *context, const char *text);
    void *context;
};

/* Serve until the target ends, or stop_fd says so; the target is then as before.  USAGE: no
 * address, a token that is too short, any_user where the address is not loopback. */
PRB_API bool prb_dap_listen(const struct prb_dap_listen_options *options, struct prb_error *err);

#endif
