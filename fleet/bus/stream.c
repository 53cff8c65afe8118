/* See stream.h. */
#include "fleet/bus/stream.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define ANSWERS 10.0 /* s that the server may take, which writes it to a disk */

bool prb_bus_make_stream(struct prb_bus *bus, const char *name, const char *config,
                         const char *without, struct prb_error *err)
{
    char reply[PRB_BUS_SUBJECT], subject[PRB_BUS_SUBJECT];
    struct prb_bus_message answer;
    PRB_AUTO(prb_bus_inbox) struct prb_bus_inbox *inbox = prb_bus_inbox_new(bus, err);
    if (!inbox)
        return false;
    prb_bus_inbox_subject(inbox, 0, reply);
    snprintf(subject, sizeof subject, "$JS.API.STREAM.CREATE.%s", name);
    const struct prb_bus_message ask = {
        .subject = subject, .reply = reply, .data = config, .len = strlen(config)};
    if (!prb_bus_publish(bus, &ask, err) || !prb_bus_inbox_next(inbox, ANSWERS, &answer, err))
        return err && err->code == PRB_TIMEOUT
                   ? prb_fail(err, PRB_TIMEOUT, "the server does not make the stream %s", name)
                   : false;
    /* That it is there already with other limits is as good: whoever made it may have a reason. */
    bool good = !answer.nobody;
    prb_bus_message_free(&answer);
    return good || prb_fail(err, PRB_UNSUPPORTED, "this server has no JetStream: %s", without);
}
