/*
 * Requests and replies as bytes, the same on a socket pair and on the bus.
 *
 * A request is one JSON object: v, id, kind, job, ranks, budget_ms, max_bytes, args; unknown keys
 * are skipped.  A reply is a length (4 bytes, little-endian), so many bytes of JSON ("id", "host",
 * "clock", "ranks": [{rank, pid, state, ms, reason, truncated}], "parts": [[rank, length]], or
 * "error"), and the parts one behind the other.
 */
#ifndef PRB_FLEET_MESSAGE_H
#define PRB_FLEET_MESSAGE_H

#include "fleet/message/kind.h"

#define PRB_FLEET_VERSION 1
#define PRB_FLEET_ID 33                       /* 16 random bytes in hexadecimal, and a NUL */
#define PRB_FLEET_REPLY_MAX ((size_t)1 << 30) /* whatever probing.cluster.host_bytes says */

struct prb_fleet_request {
    char id[PRB_FLEET_ID];
    const struct prb_fleet_kind *kind;
    char job[128];
    bool of_user; /* else the job of any user, as who asks does not say it */
    uid_t uid;
    struct prb_rank_set ranks; /* empty: all of the job */
    double budget;             /* s, from when it is received */
    size_t max_bytes;          /* of one host's reply */
    json_t *args;              /* an object; owned */
};
void prb_fleet_request_deinit(struct prb_fleet_request *request);
PRB_DEFINE_AUTO(prb_fleet_request, struct prb_fleet_request, prb_fleet_request_deinit)
/* With a fresh id. */
bool prb_fleet_request_new(const struct prb_fleet_kind *kind, const char *job, const char *args,
                           struct prb_fleet_request *out, struct prb_error *err);
/* Whether it is for a rank of this job, or for this rank of it. */
bool prb_fleet_request_has_job(const struct prb_fleet_request *request,
                               const struct prb_fleet_member *member);
bool prb_fleet_request_has(const struct prb_fleet_request *request,
                           const struct prb_fleet_member *member);
/* The text is the caller's. */
char *prb_fleet_request_text(const struct prb_fleet_request *request, struct prb_error *err);
/* Errors: CORRUPT, UNSUPPORTED (kind or version). */
bool prb_fleet_request_parse(const char *text, size_t len, struct prb_fleet_request *out,
                             struct prb_error *err);

/* id: of the request that it answers. */
bool prb_fleet_reply_pack(const struct prb_fleet_reply *reply, const char *id, struct prb_buf *out,
                          struct prb_error *err);
/*
 * The parts point into data.  With id (NULL: any) that of another question is refused.  Errors:
 * CORRUPT; what the host itself says went wrong with the whole question.
 */
bool prb_fleet_reply_parse(const char *data, size_t len, const char *id,
                           struct prb_fleet_reply *out, struct prb_error *err);
/* The host's answer to a question that it cannot serve at all. */
bool prb_fleet_reply_refuse(const char *host, const char *id, const struct prb_error *why,
                            struct prb_buf *out);
void prb_fleet_reply_deinit(struct prb_fleet_reply *reply);
PRB_DEFINE_AUTO(prb_fleet_reply, struct prb_fleet_reply, prb_fleet_reply_deinit)

#endif
