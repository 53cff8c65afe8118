/*
 * The process that starts the children of an agent.
 *
 * fork(2) copies the calling thread alone: a lock that another thread held at that moment stays
 * locked in the child.  So a process that will have threads (libnats, the collector) begins a
 * starter before: a copy of itself with one thread, which does nothing but start and end children.
 * Children end with it, and it with its process.
 */
#ifndef PRB_FLEET_STARTER_H
#define PRB_FLEET_STARTER_H

#include "fleet/message/message.h"

/* Before the first thread.  One for a process; a second begin does nothing. */
bool prb_fleet_starter_begin(struct prb_error *err);
/* The same of a process that has threads: the starter is a program, run anew, whose words end with the number of a descriptor,
 * and which then calls prb_fleet_starter_live.  By the thread with whose end it ends. */
bool prb_fleet_starter_begin_as(const char *const *words, struct prb_error *err);
/* Be one. */
_Noreturn void prb_fleet_starter_live(int fd);
/* End it and its children. */
void prb_fleet_starter_end(void);
/* Whether this process has one that answers. */
bool prb_fleet_starter_is_there(void);

/*
 * Start a child that looks at a member and serves by fd, which stays the caller's.  Any thread.
 * 0: none was started; where the starter itself is at fault it is none from then on.
 */
pid_t prb_fleet_starter_start(const struct prb_fleet_member *member, int fd, struct prb_error *err);
/* Kill a child that it started, and wait for its end if that comes at once.  Any thread. */
void prb_fleet_starter_kill(pid_t child);

#endif
