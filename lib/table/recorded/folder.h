/* Where the rings of a process are: of a live one as it sees its files, of an ended one here. */
#ifndef PRB_TABLE_RECORDED_FOLDER_H
#define PRB_TABLE_RECORDED_FOLDER_H

#include "proc/proc.h"

/* The folder of a live process, open; -1: it has none (now). */
int prb_recorded_folder_of(struct prb_proc *proc);
/* Of an ended process, by its pid (the latest of several), or the folder's own path.  By pid only
 * this user's count, and for root each user's own; -1: err, NOT_FOUND also where two users left
 * some. */
int prb_recorded_folder_ended(const char *spec, struct prb_error *err);

#endif
