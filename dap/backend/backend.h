/*
 * What a debug session is about: a live process with the probe, a live process that is only read,
 * a core or a snapshot.  One interface: a back end says which methods it has, and the capabilities
 * that the client gets follow from that.
 */
#ifndef PRB_DAP_BACKEND_H
#define PRB_DAP_BACKEND_H

#include <jansson.h>

#include "probing.h"

struct prb_dap_backend;

/* One call.  method: of inject/probe/debug/methods.def, with arguments and results as it says. */
struct prb_dap_call {
    const char *method;
    json_t *arguments;                /* borrowed; NULL: {} */
    pid_t thread;                     /* to run on, when it is parked; 0: any */
    double timeout;                   /* s; 0: the back end's own */
    bool (*cancelled)(void *context); /* asked while it waits; NULL: never */
    void *context;
};

struct prb_dap_backend_ops {
    const char *name; /* "live", "look", "core", "snapshot" */
    bool (*has)(const struct prb_dap_backend *backend, const char *method);
    /* A new reference, or NULL.  Errors: UNSUPPORTED no such method here; TIMEOUT; BUSY (the GIL
     * is held by ...); GONE the target ended; others as the method reports.  From any thread. */
    json_t *(*call)(struct prb_dap_backend *backend, const struct prb_dap_call *call,
                    struct prb_error *err)PRB_MUST_CHECK;
    void (*close)(struct prb_dap_backend *backend);
};

struct prb_dap_backend {
    const struct prb_dap_backend_ops *ops;
    /* Events of the target ("stopped", "output", ...: DAP's names and bodies), on a thread of the
     * back end; body is borrowed.  "gone": the target ended, or the probe did. */
    void (*event)(void *context, const char *event, json_t *body);
    void *context;
};

/* Live, with the probe, which is injected when there is none.  Events begin at once. */
struct prb_dap_backend *prb_dap_live_open(pid_t pid, void (*event)(void *, const char *, json_t *),
                                          void *context, struct prb_error *err) PRB_MUST_CHECK;
/*
 * Without the probe: a live process, a core or a snapshot, which is only read.  Of a live process
 * `pause` takes a view (the session asks for the first one) and `continue` drops it; the process is
 * never touched.  A core or snapshot is stopped from the beginning: the answer to `attach` has
 * "stopped", the body of that event, which the session sends after configurationDone.
 *
 * {"still": true} in the arguments of `attach`: the Python threads of a live process stop for
 * some milliseconds while a view is taken and their stacks and variables are copied, without native
 * frames.  Pages that were not foreseen (lib/inspect/stacks.c) and what is unfolded later are read
 * as they are then.
 *
 * Takes target, also on failure.  The caller sets event and context; events come from within calls.
 */
struct prb_dap_backend *prb_dap_readonly_open(struct prb_target *target,
                                              struct prb_error *err) PRB_MUST_CHECK;
/* The target is a file of this user and group: root reads sources for it with their rights. */
void prb_dap_readonly_owned_by(struct prb_dap_backend *backend, uid_t user, gid_t group);
static inline void prb_dap_backend_close(struct prb_dap_backend *backend)
{
    if (backend)
        backend->ops->close(backend);
}

#endif
