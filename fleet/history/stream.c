/* The stream that keeps what agents publish: history.h. */
#include "fleet/history/history.h"

#define ANSWERS 2.0 /* s */
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
    char reply[PRB_BUS_SUBJECT];
    struct prb_bus_message answer;
    PRB_AUTO(prb_bus_inbox) struct prb_bus_inbox *inbox = prb_bus_inbox_new(bus, err);
    if (!inbox)
        return false;
    prb_bus_inbox_subject(inbox, 0, reply);
    const struct prb_bus_message ask = {.subject = "$JS.API.STREAM.CREATE." PRB_HISTORY_STREAM,
                                        .reply = reply,
                                        .data = STREAM,
                                        .len = sizeof STREAM - 1};
    if (!prb_bus_publish(bus, &ask, err) || !prb_bus_inbox_next(inbox, ANSWERS, &answer, err))
        return err && err->code == PRB_TIMEOUT
                   ? prb_fail(err, PRB_TIMEOUT,
                              "the server does not make the stream " PRB_HISTORY_STREAM)
                   : false;
    /* That it is there already with other limits is as good: whoever made it may have a reason. */
    bool good = !answer.nobody;
    prb_bus_message_free(&answer);
    return good ||
           prb_fail(err, PRB_UNSUPPORTED, "this server has no JetStream, which keeps the history");
}
