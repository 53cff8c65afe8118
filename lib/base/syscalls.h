/*
 * System calls that are newer than the C library of a system that is still in use (Debian 11:
 * glibc 2.31; musl 1.2.3).  Their numbers are the same on every architecture (syscalls(2): since Linux 5.1).
 * On an older kernel each answers ENOSYS, and the caller does without it.
 */
#ifndef PRB_BASE_SYSCALLS_H
#define PRB_BASE_SYSCALLS_H

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424 /* Linux 5.1 */
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* 5.3 */
#endif
#ifndef SYS_close_range
#define SYS_close_range 436 /* 5.9 */
#endif
#ifndef SYS_openat2
#define SYS_openat2 437 /* 5.6 */
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438 /* 5.6 */
#endif

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2) /* linux/close_range.h of Linux 5.11 */
#endif

#ifndef STATX_INO /* glibc 2.28, musl 1.2.5 */
#include <linux/stat.h>

static inline int statx(int folder, const char *path, int flags, unsigned mask, struct statx *out)
{
    return (int)syscall(SYS_statx, folder, path, flags, mask, out);
}
#endif

#endif
