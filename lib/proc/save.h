/* A process written to a file that is somebody else's. */
#ifndef PRB_PROC_SAVE_H
#define PRB_PROC_SAVE_H

#include "proc/ids.h"
#include "proc/proc.h"

/* As prb_proc_save; as: with whose rights the file is made; NULL: ours. */
bool prb_proc_save_as(struct prb_proc *proc, struct prb_mem *record,
                      const struct prb_saved_task *tasks, size_t count, const char *path,
                      const struct prb_ids *as, uint64_t *bytes_out, struct prb_error *err);

#endif
