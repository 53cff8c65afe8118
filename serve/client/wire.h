/* A connection to a server, plain or by TLS, for one question and its answer. */
#ifndef PRB_SERVE_WIRE_H
#define PRB_SERVE_WIRE_H

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"

struct prb_wire;
/*
 * address: "HOST:PORT" or the path of a Unix socket.  pin: NULL: plain; else TLS, with the one
 * certificate of this pin (prb_certificate_pin), or with "" one that is the host's by what
 * SSL_CERT_FILE and the system's folder vouch for.  until: s, monotonic, for this and what follows.
 * NULL, and err: IO, TIMEOUT, PERMISSION (the certificate is not one to trust), CORRUPT (no TLS).
 */
struct prb_wire *prb_wire_open(const char *address, const char *pin, double until,
                               struct prb_error *err);
void prb_wire_close(struct prb_wire *wire);
PRB_DEFINE_AUTO_PTR(prb_wire, struct prb_wire, prb_wire_close)

bool prb_wire_send(struct prb_wire *wire, const struct prb_buf *bytes, double until,
                   struct prb_error *err);
/* All that comes until the server ends it.  CORRUPT: more than most bytes. */
bool prb_wire_receive(struct prb_wire *wire, struct prb_buf *bytes, size_t most, double until,
                      struct prb_error *err);

#endif
