/*
 * One host: which ranks are here, one child process for each, and answering a request for them.
 * The local transport has one in the asker; an agent has one for each class that must not wait for
 * another (a look never waits for an eval).  One thread at a time.
 */
#ifndef PRB_FLEET_HOST_H
#define PRB_FLEET_HOST_H

#include "fleet/message/message.h"

#define PRB_ATTEMPTS_MAX (1 << 30) /* of a launcher */

/* Ranks of one job on this host. */
struct prb_fleet_members {
    struct prb_fleet_member *items; /* by job, then rank, then pid; of the newest attempt */
    size_t count, cap;
    size_t stale; /* left out: of an earlier attempt */
};
void prb_fleet_members_deinit(struct prb_fleet_members *members);
PRB_DEFINE_AUTO(prb_fleet_members, struct prb_fleet_members, prb_fleet_members_deinit)
/*
 * The ranks that run here (identity.c), of this user; root: of all users where none is its own, or
 * all_users; jobs of different users are different jobs.  A rank claimed by two processes has its
 * refused set.
 */
bool prb_fleet_members_find(bool all_users, struct prb_fleet_members *out, struct prb_error *err);
/* The last step of that, for members of several hosts, too: sorts them, keeps the newest attempt of
 * each job and each rank once. */
void prb_fleet_members_settle(struct prb_fleet_members *members);

struct prb_fleet_host;
/* name: as replies call this host; NULL: the node's.  all_users: as of prb_fleet_members_find. */
struct prb_fleet_host *prb_fleet_host_new(const char *name, bool all_users,
                                          struct prb_error *err) PRB_MUST_CHECK;
/* Ends the children. */
void prb_fleet_host_free(struct prb_fleet_host *host);
PRB_DEFINE_AUTO_PTR(prb_fleet_host, struct prb_fleet_host, prb_fleet_host_free)
/* Look for ranks again.  Children of ranks that are no more end.  Borrowed until the next look. */
const struct prb_fleet_members *prb_fleet_host_look(struct prb_fleet_host *host,
                                                    struct prb_error *err);
/* The same as at the last look. */
const struct prb_fleet_members *prb_fleet_host_members(const struct prb_fleet_host *host);
/* Ranks that ended here (the others are left out), for questions that are about them, too. */
bool prb_fleet_host_remember(struct prb_fleet_host *host, const struct prb_fleet_members *members,
                             struct prb_error *err);
/*
 * Answer a request within its budget: parts of a reply that the caller frees
 * (prb_fleet_reply_deinit).  Each rank of the request that is here is in its states exactly once;
 * ranks that are not here are not mentioned.  go_on (may be NULL) is asked now and then.
 */
bool prb_fleet_host_answer(struct prb_fleet_host *host, const struct prb_fleet_request *request,
                           bool (*go_on)(void *context), void *context, struct prb_buf *reply,
                           struct prb_error *err);
/* End the children; the next request starts others. */
void prb_fleet_host_rest(struct prb_fleet_host *host);

#endif
