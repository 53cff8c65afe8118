/* Streams of the server (JetStream): what is published on their subjects is kept. */
#ifndef PRB_FLEET_BUS_STREAM_H
#define PRB_FLEET_BUS_STREAM_H

#include "fleet/bus/bus.h"

/* Make one, by JetStream's own JSON, unless it is there.  TIMEOUT, IO; UNSUPPORTED: the server has no
 * JetStream, without which there is what `without` says. */
bool prb_bus_make_stream(struct prb_bus *bus, const char *name, const char *config,
                         const char *without, struct prb_error *err);

#endif
