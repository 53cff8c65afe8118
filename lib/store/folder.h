/* Where the store's files are, and which of them somebody means. */
#ifndef PRB_STORE_FOLDER_H
#define PRB_STORE_FOLDER_H

#include "store/file.h"

/* $XDG_STATE_HOME/probing/store, else ~/.local/state/probing/store.  make: with the folders above
 * it, 0700.  PERMISSION: it is somebody else's; NOT_FOUND: it is not there; UNSUPPORTED: on a file
 * system of other machines. */
bool prb_store_folder(bool make, char **out, struct prb_error *err);

/*
 * The file that holds a job, by the pid of a process that wrote there, a part of its command line,
 * or the job's name: the newest of several, and then *others_out says how many more there are.
 * *process_out: the process in the file for a pid, else 0.  NULL: NOT_FOUND.
 */
struct prb_store_file *prb_store_find(const char *job, int64_t *process_out, size_t *others_out,
                                      struct prb_error *err);
/* The file that a process wrote to; NULL without an error: none. */
struct prb_store_file *prb_store_of(int64_t pid, int64_t started, int64_t *process_out);

#endif
