/* See events.h. */
#include "fleet/bus/events.h"

/* A day, 16 MiB: some 20,000 crashes; the oldest go first. */
#define STREAM                                                                                     \
    "{\"name\":\"" PRB_EVENTS_STREAM "\",\"subjects\":[\"" PRB_EVENTS_SUBJECTS "\"],"              \
    "\"retention\":\"limits\",\"max_consumers\":-1,\"max_msgs_per_subject\":-1,\"max_msgs\":-1,"   \
    "\"max_bytes\":16777216,\"max_age\":86400000000000,\"max_msg_size\":65536,"                    \
    "\"storage\":\"file\",\"discard\":\"old\",\"num_replicas\":1,"                                 \
    "\"duplicate_window\":600000000000,\"allow_direct\":true}"

bool prb_events_begin(struct prb_bus *bus, struct prb_error *err)
{
    return prb_bus_make_stream(bus, PRB_EVENTS_STREAM, STREAM, "no events are remembered", err);
}
