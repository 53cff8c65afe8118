/*
 * Files of a target, by the paths that it sees.  The target may put anything in their place at any
 * time: a path never leads out of its root, not by a link, nor by a link of /proc to what a process
 * has open.  Only regular files are opened, and opening never waits.  Relies on openat2(2); where
 * the kernel lacks it (Linux before 5.6), links are refused.
 */
#ifndef PRB_PROC_BELOW_H
#define PRB_PROC_BELOW_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The root folder of a process, to be given to those below and closed; -1 with errno. */
int prb_root_open(pid_t pid);
/* A regular file, open for reading, by its path below a folder, as if the folder were "/"; -1 with
 * errno: EINVAL if it is not a regular file. */
int prb_open_below(int root, const char *path);
/* A folder, to make, find and remove files in (O_PATH: openat(fd, ".", …) lists it); -1 with
 * errno. */
int prb_folder_below(int root, const char *path);
/* What is there, links followed.  False with errno. */
bool prb_stat_below(int root, const char *path, struct stat *out);
/* The same file as prb_open_below() finds below a process's root, with the rights of that process's
 * user instead of ours; -1 with errno: that user may not, or we may not take on his rights. */
int prb_open_as_target(pid_t pid, const char *path);

#endif
