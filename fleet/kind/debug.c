/*
 * A stream to a process beside one rank that serves debuggers (fleet/agent/lend.h), which the
 * agent itself begins.  args: those of struct prb_lend_wanted.  result: struct prb_debug_answer.
 */
#include <string.h>

#include "base/hex.h"
#include "fleet/message/kind.h"
#include "fleet/stream/debug.h"

static bool of_rank(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err)
{
    (void)seat, (void)args, (void)out;
    return prb_fail(err, PRB_UNSUPPORTED, "only an agent on a bus lets a debugger in");
}

static bool at_root(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err)
{
    struct prb_debug_answer *answer = result;
    const struct prb_fleet_part *part = &reply->parts[0];
    PRB_AUTO(json_t) json_t *object = json_loadb(part->data, part->len, 0, NULL);
    const char *stream = json_string_value(json_object_get(object, "stream"));
    const char *folder = json_string_value(json_object_get(object, "folder"));
    (void)args;
    if (!stream || strlen(stream) != PRB_STREAM_ID - 1 ||
        stream[strspn(stream, "0123456789abcdef")])
        return prb_fail(err, PRB_CORRUPT, "the reply of %s cannot be parsed", reply->host);
    memcpy(answer->stream, stream, PRB_STREAM_ID);
    answer->exchanges = prb_unhex(json_string_value(json_object_get(object, "exchange")),
                                  answer->public, sizeof answer->public);
    snprintf(answer->folder, sizeof answer->folder, "%s", folder ? folder : "");
    return true;
}

const struct prb_fleet_kind prb_fleet_kind_debug = {
    .name = "debug",
    .needs = PRB_FLEET_EVAL,
    .budget = 20,
    .streams = true,
    .of_rank = of_rank,
    .at_root = at_root,
};
