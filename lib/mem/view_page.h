/* What view.c and refresh.c share: the pages of a view, and the plan by which several views are
 * read again. */
#ifndef PRB_MEM_VIEW_PAGE_H
#define PRB_MEM_VIEW_PAGE_H

#include "base/buf.h"
#include "mem/view.h"

/* Of one view: more than the deepest stack takes that prb_sampler follows (up to 3.10 a frame is an
 * object of half a kilobyte). */
#define PRB_VIEW_BYTES_MAX (128u << 20)

/* Bytes [lo, hi) of a page. */
struct prb_span {
    uint16_t lo, hi;
};

#define PRB_SPAN_NONE ((struct prb_span){PRB_VIEW_UNIT_MAX, 0})

static inline bool prb_span_empty(struct prb_span span) { return span.lo >= span.hi; }

static inline void prb_span_join(struct prb_span *span, struct prb_span other)
{
    if (prb_span_empty(*span)) {
        *span = other;
    } else if (!prb_span_empty(other)) {
        span->lo = span->lo < other.lo ? span->lo : other.lo;
        span->hi = span->hi > other.hi ? span->hi : other.hi;
    }
}

struct prb_page {
    uint64_t number; /* address / unit */
    struct prb_page *next_free;
    struct prb_span valid;    /* what data holds */
    struct prb_span touched;  /* by the walk since the last refresh */
    struct prb_span compared; /* touched by the last walk: what `same` speaks of */
    struct prb_span kept;     /* what a refresh reads */
    struct prb_span asked;    /* prb_view_prefetch since the last refresh */
    uint8_t age;              /* walks that did not touch it */
    bool wanted;              /* comes with the next fetch */
    uint8_t data[];           /* a unit of the view, bytes */
};

/* A span to be read again: where it lies, and whose it is. */
struct prb_planned {
    prb_addr addr;
    uint32_t len, view;
    struct prb_page *page;
    bool late;
    uint32_t range;  /* the range it is part of */
    uint32_t offset; /* in that range */
};

struct prb_plan_owner {
    const struct prb_view *view;
    uint64_t generation;
};

/* Spans of several views, ascending and joined to ranges.  Saved by the first view and used again
 * while no view's set changes. */
struct prb_plan {
    struct prb_planned *spans;
    struct prb_range *ranges;
    struct prb_plan_owner *owners;
    uint8_t *staging; /* where the ranges go */
    size_t span_count, span_cap, range_count, range_cap, owner_count, owner_cap, staging_cap;
};

struct prb_view {
    struct prb_mem *mem;
    unsigned shift;          /* of a unit: log2 of its bytes */
    struct prb_page **table; /* open addressing by page number */
    size_t table_mask;
    struct prb_page *last; /* the latest hit */
    struct prb_page **pages;
    size_t count, cap;
    struct prb_page *free;
    size_t wanted;       /* pages with that mark ... */
    size_t wanted_from;  /* ... and where the first of them may be */
    uint64_t generation; /* changes with every span that is saved; no two views share one */
    bool asked;          /* prb_view_prefetch since the last refresh */
    bool walked;         /* since the last refresh */
    bool late;           /* prb_view_read_late */
    uint8_t *across;     /* prb_view_get over a page border */
    size_t across_cap;
    struct prb_plan plan;
};

/* Rebuild the table from pages[]. */
void prb_view_rehash(struct prb_view *view);
void prb_plan_deinit(struct prb_plan *plan);

#endif
