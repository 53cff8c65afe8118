/*
 * A file that takes a path's place once it is whole: no reader sees half of it, and a failure
 * leaves what was there.  Until then it has no name (O_TMPFILE), so that nothing is left behind
 * however we end.  Two exceptions, where a kill leaves PATH.XXXXXX: between two system calls where
 * a file is replaced (there is no link(2) that replaces), and all the time on a file system that
 * has no nameless files.  A pipe or a device keeps its place.
 */
#ifndef PRB_BASE_NEW_FILE_H
#define PRB_BASE_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

struct prb_new_file {
    int fd;           /* to write to; begin at 0 */
    const char *path; /* borrowed */
    char *beside;     /* its name until it takes the place */
    bool named;       /* it is there by that name */
};

/* For path, with these permissions less the umask.  False with errno; EEXIST: what is there is not
 * a regular file. */
bool prb_new_file_begin(struct prb_new_file *file, const char *path, mode_t mode);
/* Put it in its place and close it.  False with errno, of a full disk, too. */
bool prb_new_file_end(struct prb_new_file *file);
/* Closes it, and removes it when it did not come to its place. */
void prb_new_file_deinit(struct prb_new_file *file);
PRB_DEFINE_AUTO(prb_new_file, struct prb_new_file, prb_new_file_deinit)

/* To write to a pipe or a device.  IO: nobody reads the pipe, which is not waited for. */
FILE *prb_special_open(const char *path, struct prb_error *err);

#endif
