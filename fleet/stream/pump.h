/*
 * One side of a stream: connections of this machine, and the messages that carry their bytes.
 *
 * A side reads no more of a connection than the other has passed on, but for a window; so a client
 * that does not read holds up itself alone, and nothing grows.  The stream ends when either side
 * says so, when a message is lost, and when the other side is silent for long.
 */
#ifndef PRB_FLEET_PUMP_H
#define PRB_FLEET_PUMP_H

#include "fleet/stream/packet.h"

#define PRB_STREAM_CONNECTIONS 64           /* at a time */
#define PRB_STREAM_WINDOW ((size_t)1 << 20) /* bytes of a connection that are on their way */
#define PRB_STREAM_SILENT 15.0              /* s */

struct prb_stream {
    struct prb_packet_way way; /* to: NULL until the other side has told where */
    struct prb_mailbox *box;
    int listening; /* where connections come from; -1: the other side makes them */
    int in, out;   /* or the only connection, which may be one descriptor; -1 */
    int stop_fd;   /* readable: end; -1: none */
    int served_fd; /* readable: what serves the connections has ended; -1: none */
    /* A socket for a connection that the other side began; -1: refused. */
    int (*open)(void *context, struct prb_error *err);
    /* Whether who connected may (listening); may be NULL. */
    bool (*admits)(void *context, int fd);
    void *context;
};

/* Until it is over.  True: this side or the other ended it; why_out: what the other said of that, or
 * "".  Errors: GONE (the other side is lost), CORRUPT, PERMISSION, IO. */
bool prb_stream_run(const struct prb_stream *stream, char why_out[200], struct prb_error *err);

#endif
