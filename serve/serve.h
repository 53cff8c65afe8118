/*
 * probing serve: what its parts share.
 *
 * One thread accepts connections and looks at their first bytes (doors.h).  HTTP goes to the thread
 * of libwebsockets (http.c), which hands each question to a worker (work.h) and writes the answer
 * when it is whole: no worker ever waits for a reader.  Plain text has a thread for each connection
 * (text.c).  Routes are one file each (route.h).
 */
#ifndef PRB_SERVE_H
#define PRB_SERVE_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/error.h"
#include "net/address.h"

/* What a client may do. */
enum {
    PRB_MAY_LOOK = 1,    /* read anything, profile */
    PRB_MAY_CONTROL = 2, /* load and unload the probe, settings */
    PRB_MAY_EVAL = 4,    /* run code */
    PRB_MAY_ALL = 7,
};
/* "look,eval" as bits; look is always among them.  USAGE: names the word. */
bool prb_grants_parse(const char *text, unsigned *out, struct prb_error *err);
/* "look,eval" */
const char *prb_grants_text(unsigned grants);

/* Limits; GET /api/v1 tells them. */
#define PRB_SERVE_BODY_MAX (1u << 20)       /* bytes of a request's body */
#define PRB_SERVE_ANSWER_MAX (64u << 20)    /* bytes of an answer */
#define PRB_SERVE_KNOWN_MAX 1100            /* connections that have shown who they are */
#define PRB_SERVE_STRANGERS_MAX 64          /* others */
#define PRB_SERVE_TEXTS_MAX 32              /* known ones of plain text: each has a thread */
#define PRB_SERVE_WAITING_MAX 256           /* questions that wait for a worker */
#define PRB_SERVE_WAITING_TARGET_MAX 16     /* those that may take long, for one target */
#define PRB_SERVE_ROWS_MAX 10000            /* of a query, json and text */
#define PRB_SERVE_ROWS_STREAM_MAX 1000000   /* csv and jsonl */
#define PRB_SERVE_PROFILE_SECONDS_MAX 600.0 /* of one profile */

#define PRB_LIVE_PATH "/api/v1/live" /* of the WebSocket */

struct prb_serve_options {
    const char *address;           /* of TCP; NULL: none, the Unix socket alone */
    const char *token_file;        /* the token is its first line; NULL: one is made */
    const char *certificate, *key; /* files of TLS on TCP; NULL: it goes unencrypted */
    unsigned grants;               /* of who comes by TCP */
    int target;             /* a server of its own for this process; 0: of all of the user's */
    int while_pid;          /* it lives as long as this, and those that join; 0: on and on */
    bool agent;             /* of this host on the bus, too */
    bool no_token;          /* on loopback this user needs none, to look */
    const char *hosts[8];   /* names of this server beside those of loopback; ends with NULL */
    const char *origins[8]; /* pages that may ask, "https://example.org"; ends with NULL */
    int stop_fd;            /* when it can be read, the server ends; nobody reads it */
};

struct prb_log_file;
struct prb_watch;
struct prb_runs;
struct prb_tokens;
struct prb_life;
struct prb_certificate;
struct prb_guests;
struct prb_serve_agent;
struct prb_serve_targets;

struct prb_serve {
    const struct prb_serve_options *options;
    char folder[96];            /* of the socket and what lies beside it */
    struct prb_address address; /* with the real port */
    char token[129];
    unsigned grants;
    char program[4096]; /* of the command line, for answers as text */
    struct prb_log_file *log;
    struct prb_watch *watch;   /* watch.h */
    struct prb_runs *runs;     /* runs.h */
    struct prb_tokens *tokens; /* second ones */
    struct prb_serve_targets *targets;
    struct prb_serve_agent
        *agent; /* this host's, or ready to be; NULL: of a server for some processes */
    struct prb_guests *guests;           /* connections */
    struct prb_life *life;               /* of a server for some processes; NULL */
    struct prb_certificate *certificate; /* NULL: no TLS */
    atomic_bool ending;
};

#endif
