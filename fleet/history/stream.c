/* The stream that keeps what agents publish, and what its limits are: history.h. */
#include <stdio.h>

#include "fleet/bus/stream.h"
#include "fleet/history/history.h"
#include "fleet/settings.h"

/* The same message twice within 10 minutes counts once.  The oldest go first. */
#define STREAM                                                                                     \
    "{\"name\":\"" PRB_HISTORY_STREAM "\",\"subjects\":[\"" PRB_HISTORY_SUBJECTS "\"],"            \
    "\"retention\":\"limits\",\"max_consumers\":-1,\"max_msgs_per_subject\":-1,\"max_msgs\":-1,"   \
    "\"max_bytes\":%.0f,\"max_age\":%.0f,\"max_msg_size\":1048576,"                                \
    "\"storage\":\"file\",\"discard\":\"old\",\"num_replicas\":1,"                                 \
    "\"duplicate_window\":%.0f,\"allow_direct\":true}"
#define DUPLICATES 600.0 /* s */

bool prb_history_begin(struct prb_bus *bus, struct prb_error *err)
{
    char config[700];
    double age = prb_fleet_setting(PRB_FLEET_history_age);
    snprintf(config, sizeof config, STREAM, prb_fleet_setting_or(PRB_FLEET_history_bytes, -1),
             age * 1e9, (age < DUPLICATES ? age : DUPLICATES) * 1e9);
    return prb_bus_make_stream(bus, PRB_HISTORY_STREAM, config, "no history is kept", err);
}
