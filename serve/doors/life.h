/* A server of its own for some processes: it lives as long as they do, and a minute longer: pages say that
 * they have ended, and read their last tables. */
#ifndef PRB_SERVE_LIFE_H
#define PRB_SERVE_LIFE_H

#include <sys/types.h>

#include "base/error.h"

#define PRB_LIFE_TARGETS_MAX 256
#define PRB_LIFE_LINGER 60.0 /* s */

struct prb_life;
/* stop_fd: as prb_serve_options has it.  by_probe: the end of a process's probe is an end of it, too.
 * ended(): so many seconds after the last one is over; in a thread of its own.  NULL: NOMEM. */
struct prb_life *prb_life_new(int stop_fd, bool by_probe, double linger, void (*ended)(void),
                              struct prb_error *err);
/* Once stop_fd can be read. */
void prb_life_free(struct prb_life *life);
/* It lives as long as this process, too.  NOT_FOUND, BUSY. */
bool prb_life_add(struct prb_life *life, pid_t pid, struct prb_error *err);

struct prb_serve;
/* Whether a server may look at a process: a server for some at these, also when they have ended, and
 * at what descends from them while they live; one for all of its user's processes at any. */
bool prb_serve_has(const struct prb_serve *serve, pid_t pid);
/* The processes that such a server was started for, "12,34", as many as fit; false: it is for all. */
bool prb_serve_pids(const struct prb_serve *serve, char *out, size_t size);
/* The same as an error that names those it has. */
bool prb_serve_check_has(const struct prb_serve *serve, pid_t pid, struct prb_error *err);

#endif
