/*
 * What a probe can be asked: one struct prb_request_kind for each request type, listed in
 * requests.def or by a part (part.h), and what its handler may do with an open request.
 *
 * The server thread calls begin and cancel, which never block and never take the GIL; what may
 * block goes on in threads of the handler (python.h), which hold the request meanwhile.  Every
 * function below may be called on any thread.  A request is closed by its end, by its failure, by
 * its client's going or by detach; whatever is sent afterwards is dropped, so the slow side need
 * not know who was first.
 *
 * To add a request: its number in protocol.h, and `const struct prb_request_kind prb_request_NAME =
 * {…}` in the requests of its part.
 */
#ifndef PRB_PROBE_SERVER_REQUEST_H
#define PRB_PROBE_SERVER_REQUEST_H

#include "base/error.h"
#include "inject/probe/server/message.h"

struct prb_request;

enum prb_cancel {
    PRB_CANCEL_CLIENT, /* it sent CANCEL and still waits for an answer */
    PRB_CANCEL_GONE,   /* the client went or the probe ends: nobody waits (the request is closed),
                          what runs should stop */
};

struct prb_request_kind {
    uint16_t type;    /* enum prb_message_type */
    const char *name; /* for the log: "evaluate" */
    bool logged;      /* a line in the log: name and field SOURCE */
    bool runs_python; /* refused where CPython's own switches forbid remote debugging */
    /* On the server thread.  The message's fields are borrowed during the call.  Answers at once,
     * or starts a helper. */
    void (*begin)(struct prb_request *request, const struct prb_message *message);
    /* On the server thread.  NULL: the request fails with TIMEOUT. */
    void (*cancel)(struct prb_request *request, enum prb_cancel why);
};

/* A handler that answers later holds the request until it has. */
struct prb_request *prb_request_hold(struct prb_request *request);
void prb_request_release(struct prb_request *request);
/* The handler's own data (set in begin), freed by release when nobody holds the request any more.
 */
void prb_request_set_data(struct prb_request *request, void *data, void (*release)(void *data));
void *prb_request_data(const struct prb_request *request);
/* Whether somebody still waits for the answer. */
bool prb_request_open(struct prb_request *request);

enum prb_sent { PRB_SENT, PRB_SENT_FULL, PRB_SENT_CLOSED };
/* Output; stream 1: stdout, 2: stderr.  Never blocks.  FULL: nothing was sent, the client reads too
 * slowly; wait for room without the GIL, or leave it out. */
enum prb_sent prb_request_output(struct prb_request *request, unsigned stream, const char *text,
                                 size_t len);
enum prb_sent prb_request_item(struct prb_request *request, const char *text, size_t len);
/* The same, however much waits: a client that lets it grow without bound is dropped. */
enum prb_sent prb_request_item_now(struct prb_request *request, const char *text, size_t len);
/* Wait until there is room again: true; false: closed, or the seconds are over.  Never with the GIL
 * held. */
bool prb_request_wait_room(struct prb_request *request, double seconds);

/* The one end: fields of a message made by prb_fields_* below, NULL: none.  False: closed before.
 */
bool prb_request_end(struct prb_request *request, const struct prb_buf *fields);
bool prb_request_fail(struct prb_request *request, const struct prb_error *err);
bool prb_request_failf(struct prb_request *request, enum prb_code code, const char *remedy,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

#define K(name) extern const struct prb_request_kind prb_request_##name;
#include "inject/probe/server/requests.def"
#undef K

#endif
