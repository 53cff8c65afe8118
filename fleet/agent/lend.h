/*
 * The agent's side of debugging: for each stream a process of its own that serves debuggers (DAP)
 * of one rank, `probing debug` at a socket that nobody else reaches.  It ends with the stream, and
 * with the agent; the rank then runs as before.
 */
#ifndef PRB_FLEET_AGENT_LEND_H
#define PRB_FLEET_AGENT_LEND_H

#include <jansson.h>

#include "fleet/agent/agent.h"
#include "fleet/stream/pump.h"

#define PRB_LENDS_MAX 16 /* at a time */

struct prb_lends;
/* program: as of prb_cluster_agent_options; stays. */
struct prb_lends *prb_lends_new(struct prb_log_file *log, const char *program,
                                struct prb_error *err) PRB_MUST_CHECK;
/* End all, and wait for them. */
void prb_lends_end(struct prb_lends *lends);
void prb_lends_free(struct prb_lends *lends);

struct prb_lend_wanted {
    struct prb_bus *bus; /* stays until prb_lends_end */
    const char *job;     /* as the request names it */
    pid_t pid;
    int rank;
    /* pause, look (booleans), resume_after (s), reached (HOST:PORT), exchange (the asker's key for
     * this stream, in hexadecimal) */
    const json_t *args;
    const unsigned char *trusted; /* whose messages are obeyed; stays */
    double budget;                /* s, until it serves */
};
struct prb_lend_begun {
    char id[PRB_STREAM_ID];
    char exchange[2 * PRB_SECRET + 1]; /* our key for it; "": the asker told none */
};
/* Begin one, and hear its subject, PRB_BUS_STREAM_SUBJECT.  Errors: BUSY, USAGE, TIMEOUT, what the
 * process says. */
bool prb_lend_begin(struct prb_lends *lends, const struct prb_lend_wanted *wanted,
                    struct prb_lend_begun *out, struct prb_error *err);

#endif
