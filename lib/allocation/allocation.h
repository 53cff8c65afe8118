/*
 * Sampled allocations of a target, as its probe records them (region.h), read from outside: what
 * each stack allocated in each interval, what of it lives, and the names of the stacks.  probing.h
 * has them as profiles (profile.c).
 */
#ifndef PRB_ALLOCATION_ALLOCATION_H
#define PRB_ALLOCATION_ALLOCATION_H

#include "allocation/region.h"
#include "base/buf.h"
#include "inspect/target.h"

struct prb_allocations {
    struct prb_region head;
    struct prb_site *sites;
    struct prb_site_frame *frames;
    struct prb_cell *cells; /* those in use, the oldest first */
    size_t cell_count;
    double taken; /* s since the epoch, when it was read */
};
void prb_allocations_deinit(struct prb_allocations *allocations);
PRB_DEFINE_AUTO(prb_allocations, struct prb_allocations, prb_allocations_deinit)

/*
 * The record of a target; every index in it is checked.  Errors: NOT_FOUND (there is none: it was
 * never switched on), CORRUPT, FAULT, BUSY (it changed in every try).
 */
bool prb_allocations_read(struct prb_target *target, struct prb_allocations *out,
                          struct prb_error *err);
/* "python", "native", …; "?" for a number that is none. */
const char *prb_allocation_kind_name(uint32_t kind);
/* Seconds since the epoch at which a cell's interval ended, or ends. */
double prb_cell_time(const struct prb_allocations *allocations, const struct prb_cell *cell);

/* A frame of a site's stack. */
struct prb_site_name {
    const char *function; /* co_qualname, co_name, or the symbol; NULL: not known any more */
    const char *name;     /* co_name, or as function */
    const char *file;     /* co_filename; of native code the mapped file; or NULL */
    int line, first_line; /* 0: not known */
    bool native;
};
struct prb_site_names {
    struct prb_site_name *items; /* the innermost first: the native caller, if there is one */
    size_t count;
};

/* The names of all sites; texts are borrowed from it, and from the target. */
struct prb_allocation_names {
    struct prb_site_names *sites;
    struct prb_arena arena;
};
void prb_allocation_names_deinit(struct prb_allocation_names *names);
PRB_DEFINE_AUTO(prb_allocation_names, struct prb_allocation_names, prb_allocation_names_deinit)
bool prb_allocation_names_find(struct prb_target *target, const struct prb_allocations *allocations,
                               struct prb_allocation_names *out, struct prb_error *err);
/* The frame that a site is told by: the innermost one of Python, else the native caller; NULL:
 * neither is known. */
const struct prb_site_name *prb_site_told_by(const struct prb_site_names *site);

#endif
