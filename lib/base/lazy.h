/*
 * Shared libraries that few commands need, opened when they are first used: each costs every other
 * command 0.15 to 0.4 ms (libdw and libunwind are for native frames, SQLite is for queries).
 *
 * The libraries' own headers stay in use.  A struct of function pointers is named member by member
 * after the functions, and prb_lazy_open() fills it:
 *
 *     #define FUNCTIONS(F) F(dwarf_begin) F(dwarf_end)
 *     static struct { FUNCTIONS(PRB_LAZY_POINTER) } dw;
 *     static const char *const names[] = {FUNCTIONS(PRB_LAZY_NAME)};
 */
#ifndef PRB_BASE_LAZY_H
#define PRB_BASE_LAZY_H

#include <stdatomic.h>

#include "base/error.h"

#define PRB_LAZY_POINTER(function) __typeof__(function) *function;
/* In two steps, as the function's name may be a macro (libunwind's are). */
#define PRB_LAZY_NAME(function) PRB_LAZY_TEXT(function),
#define PRB_LAZY_TEXT(function) #function

struct prb_lazy {
    const char *soname;       /* as configure found it */
    const char *const *names; /* count of them */
    void *functions;          /* the struct: as many pointers */
    size_t count;
    atomic_bool ready;
};

/* True when every function is there; false: UNSUPPORTED, and a later call tries again.  Any
 * number of threads may call it at once.  A library stays open. */
bool prb_lazy_open(struct prb_lazy *library, struct prb_error *err);

#endif
