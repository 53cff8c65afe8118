/* `probing -t HOST:PORT COMMAND`: a command that looks, run by a server. */
#ifndef PRB_SERVE_ELSEWHERE_H
#define PRB_SERVE_ELSEWHERE_H

#include "serve/serve.h"

struct prb_elsewhere {
    const char
        *where; /* "HOST:PORT", "http://HOST:PORT/#token=…", "https://…", the path of its socket */
    const char *pid;    /* digits, or NULL */
    const char *name;   /* or NULL */
    const char *output; /* a file, or NULL: standard output */
    const char *const *words;
    size_t word_count;
};
/* Ask and print.  Errors: those of prb_ask; IO. */
bool prb_elsewhere(const struct prb_elsewhere *asked, struct prb_error *err);

/* A server of its own for process pid, that listens at an address already, takes this one, too; out:
 * its URL, pid_out: its process.  NOT_FOUND: there is none. */
bool prb_join(const char *address, int pid, char *out, size_t size, int *pid_out,
              struct prb_error *err);

/* POST or DELETE /api/v1/tokens to this user's server: its address with a second token that has the
 * grants; how many were ended. */
bool prb_second_url(const char *allow, char *out, size_t size, struct prb_error *err);
bool prb_second_revoke(int *count, struct prb_error *err);

/* POST or DELETE /api/v1/agent: this user's server is the host's agent; already: it was, or another process is; was: it was.
 * wanted: serve/work/agent.h, as JSON. */
bool prb_server_attach(const char *wanted, int *pid, bool *already, struct prb_error *err);
bool prb_server_detach(bool *was, struct prb_error *err);

#endif
