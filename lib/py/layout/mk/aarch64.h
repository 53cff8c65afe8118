/*
 * Included before everything else, this gives mk the thread types of glibc on AArch64
 * (sysdeps/aarch64/nptl/bits/ pthreadtypes-arch.h), so that an x86-64 machine prints that
 * layout: of what CPython's structs hold, only pthread_mutex_t is of another size (48 bytes
 * instead of 40).
 */
#define _BITS_PTHREADTYPES_ARCH_H 1
#include <bits/wordsize.h>
#define __SIZEOF_PTHREAD_ATTR_T 64
#define __SIZEOF_PTHREAD_MUTEX_T 48
#define __SIZEOF_PTHREAD_MUTEXATTR_T 8
#define __SIZEOF_PTHREAD_COND_T 48
#define __SIZEOF_PTHREAD_CONDATTR_T 8
#define __SIZEOF_PTHREAD_RWLOCK_T 56
#define __SIZEOF_PTHREAD_RWLOCKATTR_T 8
#define __SIZEOF_PTHREAD_BARRIER_T 32
#define __SIZEOF_PTHREAD_BARRIERATTR_T 8
#define __LOCK_ALIGNMENT
#define __ONCE_ALIGNMENT
