/* The stream that keeps what agents publish: history.h. */
#include "fleet/history/history.h"

#include "fleet/bus/stream.h"

/* A day, within what the server keeps on disk, the oldest first; the same message twice within 10 minutes
 * counts once. */
#define STREAM                                                                                     \
    "{\"name\":\"" PRB_HISTORY_STREAM "\",\"subjects\":[\"" PRB_HISTORY_SUBJECTS "\"],"            \
    "\"retention\":\"limits\",\"max_consumers\":-1,\"max_msgs_per_subject\":-1,\"max_msgs\":-1,"   \
    "\"max_bytes\":-1,\"max_age\":86400000000000,\"max_msg_size\":1048576,"                        \
    "\"storage\":\"file\",\"discard\":\"old\",\"num_replicas\":1,"                                 \
    "\"duplicate_window\":600000000000,\"allow_direct\":true}"

bool prb_history_begin(struct prb_bus *bus, struct prb_error *err)
{
    return prb_bus_make_stream(bus, PRB_HISTORY_STREAM, STREAM, "no history is kept", err);
}
