/* Debug servers that this server started: `probing debug --listen` as children, one a process. */
#ifndef PRB_SERVE_DEBUGGERS_H
#define PRB_SERVE_DEBUGGERS_H

#include <sys/types.h>

#include "serve/serve.h"

#define PRB_DEBUGGERS_MAX 16

struct prb_debug_server {
    char address[PRB_ADDRESS_TEXT]; /* where it listens */
    char token[129];                /* that clients show; "": none was made */
    bool paused;                    /* the process waits for a client */
};

struct prb_debug_wanted {
    const char *program; /* of the command line */
    pid_t target;
    const char *address; /* HOST:PORT */
    bool pause;
    bool (*goes_on)(void *context); /* asked while it starts; false ends it */
    void *context;
};
/* Start one, or give the one that the process has; *fresh says which.  Errors: what it says, BUSY
 * (there are 16), TIMEOUT. */
bool prb_debugger_begin(const struct prb_debug_wanted *wanted, struct prb_debug_server *out,
                        bool *fresh, struct prb_error *err);
/* End that of a process.  NOT_FOUND. */
bool prb_debugger_end(pid_t target, struct prb_error *err);
/* End all, with the server. */
void prb_debuggers_end(void);

#endif
