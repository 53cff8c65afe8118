/*
 * libc as libprobe.so may use it: a library built on a new system loads into a program that runs on
 * an older one, so calls that glibc got or moved to other symbol versions later than 2.17 go to the
 * kernel, and functions that moved from libpthread and libdl to libc (2.34) are bound to their
 * first versions.  Included before everything else in libprobe.so's files (local.mk); a test looks
 * at the versions that are left.
 */
#ifndef PRB_PROBE_LIBC_H
#define PRB_PROBE_LIBC_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define PRB_FIRST_GLIBC "GLIBC_2.2.5"
#else
#define PRB_FIRST_GLIBC "GLIBC_2.17"
#endif
#define PRB_BIND(function, version) __asm__(".symver " #function "," #function "@" version)
#ifdef PRB_IN_PROBE
PRB_BIND(dladdr, PRB_FIRST_GLIBC);
PRB_BIND(dlclose, PRB_FIRST_GLIBC);
PRB_BIND(dlopen, PRB_FIRST_GLIBC);
PRB_BIND(dlsym, PRB_FIRST_GLIBC);
PRB_BIND(pthread_attr_setstacksize, PRB_FIRST_GLIBC);
PRB_BIND(pthread_getspecific, PRB_FIRST_GLIBC);
PRB_BIND(pthread_key_create, PRB_FIRST_GLIBC);
PRB_BIND(pthread_mutex_timedlock, PRB_FIRST_GLIBC);
PRB_BIND(pthread_once, PRB_FIRST_GLIBC);
PRB_BIND(pthread_setspecific, PRB_FIRST_GLIBC);
PRB_BIND(pthread_create, PRB_FIRST_GLIBC);
PRB_BIND(pthread_sigmask, PRB_FIRST_GLIBC);
PRB_BIND(sem_init, PRB_FIRST_GLIBC);
PRB_BIND(sem_post, PRB_FIRST_GLIBC);
PRB_BIND(sem_timedwait, PRB_FIRST_GLIBC);
#ifdef __x86_64__
PRB_BIND(pthread_condattr_setclock, "GLIBC_2.3.3");
PRB_BIND(pthread_setname_np, "GLIBC_2.12");
#else
PRB_BIND(pthread_condattr_setclock, PRB_FIRST_GLIBC);
PRB_BIND(pthread_setname_np, PRB_FIRST_GLIBC);
#endif
#endif

/* struct stat is the kernel's on both architectures. */
static inline int prb_fstat(int fd, struct stat *out)
{
    return (int)syscall(SYS_newfstatat, fd, "", out, AT_EMPTY_PATH);
}

static inline int prb_lstatat(int folder, const char *name, struct stat *out)
{
    return (int)syscall(SYS_newfstatat, folder, name, out, AT_SYMLINK_NOFOLLOW);
}

#ifdef PRB_IN_PROBE
/* libc's own are of 2.33. */
#define fstat(fd, out) prb_fstat(fd, out)
#define lstat(path, out) prb_lstatat(AT_FDCWD, path, out)
#define fstatat(folder, name, out, flags) ((int)syscall(SYS_newfstatat, folder, name, out, flags))
#endif

#endif
