#include "base/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>

#include "base/raw.h"
#include "base/syscalls.h"

#define LIST_BYTES 1024 /* of /proc/self/fd at a time */

/* The number that a name of /proc/self/fd is; false: "." and "..". */
static bool number_of(const char *name, unsigned *number)
{
    *number = 0;
    for (; *name >= '0' && *name <= '9'; name++)
        *number = *number * 10 + (unsigned)(*name - '0');
    return *name == '\0';
}

/* The kernel lists in the order of numbers, so closing meanwhile loses none. */
static bool one_by_one(unsigned first, unsigned last, unsigned flags)
{
    char list[LIST_BYTES] __attribute__((aligned(8)));
    long folder =
        PRB_RAW4(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    long len, at;
    if (folder < 0)
        return false;
    while ((len = PRB_RAW3(SYS_getdents64, folder, list, sizeof list)) > 0)
        for (at = 0; at < len;) {
            const struct dirent *entry =
                (const void *)(list + at); /* as the kernel has it, where long has 64 bits */
            unsigned fd;
            at += entry->d_reclen;
            if (!number_of(entry->d_name, &fd) || fd < first || fd > last || fd == folder)
                continue;
            if (flags & CLOSE_RANGE_CLOEXEC)
                PRB_RAW3(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
            else
                PRB_RAW1(SYS_close, fd);
        }
    PRB_RAW1(SYS_close, folder);
    return len == 0;
}

static bool done_with(unsigned first, unsigned last, unsigned flags)
{
    return first > last || PRB_RAW3(SYS_close_range, first, last, flags) == 0 ||
           one_by_one(first, last, flags);
}

bool prb_close_descriptors(unsigned first, unsigned last) { return done_with(first, last, 0); }

bool prb_close_on_exec(unsigned first) { return done_with(first, UINT_MAX, CLOSE_RANGE_CLOEXEC); }
