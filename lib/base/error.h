/*
 * Errors.  A fallible function returns bool (or a pointer), true (or non-NULL) meaning success,
 * and fills the
 * caller's struct prb_error, its last parameter, on failure only.  NULL means: do not even
 * format. The struct and its codes are public (probing.h); here is how the library fills them.
 */
#ifndef PRB_BASE_ERROR_H
#define PRB_BASE_ERROR_H

#include <stdarg.h>

#include "probing.h"

/* prb_fail (probing.h) for a failed system call; sys is its errno, from which the code follows
 * (EPERM, EACCES: permission; ESRCH: gone; ENOENT: not found; EFAULT: fault; ENOMEM: nomem; else
 * io) , and a remedy where it is our limit of open files. */
bool prb_fail_sys(struct prb_error *err, int sys, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether an errno means that we lack memory or descriptors, and says nothing about what was asked
 * for. */
bool prb_error_is_our_limit(int sys);

/* A fault at an address of the target. */
bool prb_fail_addr(struct prb_error *err, prb_addr addr, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "context: " before the text of a filled error, once per layer on the way up.  Returns
 * false. */
bool prb_error_prefix(struct prb_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Set what the user can do about it, one sentence.  Returns false. */
bool prb_error_remedy(struct prb_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Out of memory.  Returns false. */
bool prb_nomem(struct prb_error *err);

/* Return NULL where a function gives a pointer: return PRB_NULL(prb_fail(...)). */
#define PRB_NULL(failure) ((void)(failure), NULL)

#endif
