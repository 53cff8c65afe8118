/* How folders of rings are named and where they may be: what the writer's and the reader's side
 * share. */
#ifndef PRB_RING_FOLDER_H
#define PRB_RING_FOLDER_H

#include <sys/types.h>

#include "ring/ring.h"

#define PRB_RING_DATA_VARIABLE "PROBING_DATA_DIR"
/* DATA_DIR is one of these with "/probing-UID", the first that can be had. */
#define PRB_RING_PLACES 2
static const char *const prb_ring_places[PRB_RING_PLACES]
    __attribute__((unused)) = {"/dev/shm", "/tmp"};

/* Start time, clock ticks since boot: field 22 of proc/stat (proc_pid_stat(5)). */
bool prb_ring_started(const char *proc, uint64_t *out);
/* "PID-STARTTIME" */
bool prb_ring_folder_name(const char *name, pid_t *pid_out, uint64_t *started_out);

#endif
