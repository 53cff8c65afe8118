/* How folders of rings are named and where they may be: what the writer's and the reader's side
 * share. */
#ifndef PRB_RING_FOLDER_H
#define PRB_RING_FOLDER_H

#include <sys/types.h>

#include "ring/ring.h"

#define PRB_RING_DATA_VARIABLE "PROBING_DATA_DIR"
/*
 * DATA_DIR is the first of these that can be made and is ours; the last for those whose user id is
 * another's in the user namespace that a shared file system belongs to. user_namespace:
 * prb_ring_user_namespace.
 */
#define PRB_RING_PLACES 3
void prb_ring_place(size_t which, unsigned uid, uint64_t user_namespace,
                    char out[PRB_RING_PATH_MAX]);
/* Where all of them are, as "probing-…". */
#define PRB_RING_PARENTS 2
extern const char *const prb_ring_parents[PRB_RING_PARENTS];

/* The inode of proc/ns/user, 0 when it is not known. proc: "/proc/PID". */
uint64_t prb_ring_user_namespace(const char *proc);

/* Start time, clock ticks since boot: field 22 of proc/stat (proc_pid_stat(5)). */
bool prb_ring_started(const char *proc, uint64_t *out);
/* "PID-STARTTIME" */
bool prb_ring_folder_name(const char *name, pid_t *pid_out, uint64_t *started_out);

#endif
