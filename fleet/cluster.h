/*
 * cluster.h: the bus at which the hosts of a job meet, as `probing cluster` starts and ends it, and
 * a host's agent on it.  Conventions are those of probing.h.
 */
#ifndef PRB_FLEET_CLUSTER_H
#define PRB_FLEET_CLUSTER_H

#include "probing.h"

struct prb_cluster_up_options {
    const char *listen; /* "HOST:PORT", "HOST", ":PORT" (port 0: any); NULL: all addresses, 4222 */
    const char *store;  /* most bytes that the server keeps on disk, as "1G"; NULL: that */
};

struct prb_cluster_bus {
    char folder[4096]; /* of the bus files and the server's own */
    char host[80];     /* where the server runs */
    int port;
    int pid;      /* of the process that keeps the server running; 0: not of this host */
    bool already; /* it ran before */
};

/*
 * Write keys, certificate and configuration where they are missing, start nats-server with a
 * process that starts it again when it ends, and wait until it listens.  Errors: UNSUPPORTED (no
 * nats-server, no libcrypto), USAGE, BUSY (another server has the port), IO.
 */
PRB_API bool prb_cluster_up(const struct prb_cluster_up_options *options,
                            struct prb_cluster_bus *out, struct prb_error *err);
/* Only the files; the text is the server's configuration, which the caller frees. */
PRB_API char *prb_cluster_configuration(const struct prb_cluster_up_options *options,
                                        struct prb_error *err) PRB_MUST_CHECK;
/* End the server and what keeps it running; *was_running false: there was none.  Errors:
 * UNSUPPORTED (it runs on another host), TIMEOUT. */
PRB_API bool prb_cluster_down(struct prb_cluster_bus *out, bool *was_running,
                              struct prb_error *err);

#endif
