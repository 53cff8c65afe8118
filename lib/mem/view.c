/*
 * Views: pages of the target that a walk touched, each a unit of the view, by a hash of their
 * numbers; in each the span that was touched. Refreshing is in refresh.c; view_page.h is what the two share.
 */
#include <stdatomic.h>
#include <string.h>

#include "mem/view_page.h"

#define TABLE_MIN 32

static void free_pages(struct prb_view *view)
{
    prb_view_clear(view);
    while (view->free) {
        struct prb_page *next = view->free->next_free;
        free(view->free);
        view->free = next;
    }
}

void prb_view_set_unit(struct prb_view *view, unsigned unit)
{
    free_pages(view);
    view->shift = (unsigned)__builtin_ctz(unit);
}

struct prb_view *prb_view_new(struct prb_mem *mem, unsigned unit, struct prb_error *err)
{
    struct prb_view *view = calloc(1, sizeof *view);
    struct prb_page **table = calloc(TABLE_MIN, sizeof *table);
    if (!view || !table) {
        free(view);
        free(table);
        return PRB_NULL(prb_nomem(err));
    }
    /* A plan must not take a new view for one that was freed at the same address. */
    static atomic_uint_fast32_t serial;
    view->generation = (uint64_t)atomic_fetch_add(&serial, 1) << 32;
    view->mem = mem;
    view->shift = (unsigned)__builtin_ctz(unit);
    view->table = table;
    view->table_mask = TABLE_MIN - 1;
    return view;
}

void prb_view_clear(struct prb_view *view)
{
    for (size_t i = 0; i < view->count; i++) {
        view->pages[i]->next_free = view->free;
        view->free = view->pages[i];
    }
    view->count = 0;
    view->wanted = 0;
    view->asked = view->walked = false;
    view->last = NULL;
    view->generation++;
    memset(view->table, 0, (view->table_mask + 1) * sizeof *view->table);
}

void prb_view_free(struct prb_view *view)
{
    if (!view)
        return;
    free_pages(view);
    prb_plan_deinit(&view->plan);
    free(view->pages);
    free(view->table);
    free(view->across);
    free(view);
}

void prb_view_read_late(struct prb_view *view) { view->late = true; }

static size_t unit_of(const struct prb_view *view) { return (size_t)1 << view->shift; }

size_t prb_view_bytes(const struct prb_view *view) { return view->count << view->shift; }

static size_t within(const struct prb_view *view, prb_addr addr)
{
    return (size_t)addr & (unit_of(view) - 1);
}

static size_t slot_of(const struct prb_view *view, uint64_t number)
{
    return (size_t)(number * 0x9e3779b97f4a7c15u >> 32) & view->table_mask;
}

static void table_put(struct prb_view *view, struct prb_page *page)
{
    size_t slot = slot_of(view, page->number);
    while (view->table[slot])
        slot = (slot + 1) & view->table_mask;
    view->table[slot] = page;
}

void prb_view_rehash(struct prb_view *view)
{
    memset(view->table, 0, (view->table_mask + 1) * sizeof *view->table);
    for (size_t i = 0; i < view->count; i++)
        table_put(view, view->pages[i]);
    view->last = NULL;
    view->generation++;
}

static inline struct prb_page *find(struct prb_view *view, uint64_t number)
{
    if (view->last && view->last->number == number)
        return view->last;
    for (size_t slot = slot_of(view, number); view->table[slot];
         slot = (slot + 1) & view->table_mask) {
        if (view->table[slot]->number == number)
            return view->last = view->table[slot];
    }
    return NULL;
}

static bool table_grow(struct prb_view *view)
{
    if (view->count * 2 < view->table_mask)
        return true;
    size_t size = (view->table_mask + 1) * 2;
    struct prb_page **table = realloc(view->table, size * sizeof *table);
    if (!table)
        return false;
    view->table = table;
    view->table_mask = size - 1;
    prb_view_rehash(view);
    return true;
}

/* A page without bytes yet. */
static struct prb_page *add(struct prb_view *view, uint64_t number)
{
    if (prb_view_bytes(view) >= PRB_VIEW_BYTES_MAX || !table_grow(view) ||
        !PRB_GROW(view->pages, view->count, view->cap))
        return NULL;
    struct prb_page *page = view->free;
    if (page)
        view->free = page->next_free;
    else if (!(page = malloc(sizeof *page + unit_of(view))))
        return NULL;
    memset(page, 0, offsetof(struct prb_page, data));
    page->number = number;
    page->touched = PRB_SPAN_NONE;
    view->pages[view->count++] = page;
    table_put(view, page);
    view->generation++;
    return view->last = page;
}

/* The two ranges that are missing before and behind what a page has; the whole page when it has
 * nothing. */
static size_t missing(const struct prb_view *view, struct prb_page *page, struct prb_range out[2])
{
    prb_addr start = page->number << view->shift;
    const size_t unit = unit_of(view);
    struct prb_span have = page->valid;
    size_t n = 0;
    if (prb_span_empty(have)) {
        out[n++] = (struct prb_range){.addr = start, .buf = page->data, .len = unit};
        return n;
    }
    if (have.lo)
        out[n++] = (struct prb_range){.addr = start, .buf = page->data, .len = have.lo};
    if (have.hi < unit)
        out[n++] = (struct prb_range){
            .addr = start + have.hi, .buf = page->data + have.hi, .len = unit - have.hi};
    return n;
}

/* Take what came of the ranges that missing() gave. */
static void took(const struct prb_view *view, struct prb_page *page, const struct prb_range *ranges,
                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t lo = (uint16_t)within(view, ranges[i].addr);
        uint16_t hi = (uint16_t)(lo + ranges[i].got);
        if (prb_span_empty(page->valid))
            page->valid = (struct prb_span){lo, hi};
        else if (lo == page->valid.hi)
            page->valid.hi = hi;
        else if (hi == page->valid.lo)
            page->valid.lo = lo;
    }
}

/* How many pages that were announced come with a page that is needed now. */
#define ALONG 64

/* Read what a page lacks, and with it pages that were announced by prb_view_prefetch. */
static void fetch(struct prb_view *view, struct prb_page *page)
{
    struct prb_range ranges[2 + ALONG];
    struct prb_page *along[ALONG];
    size_t n = missing(view, page, ranges), own = n, also = 0;
    view->wanted -= page->wanted;
    page->wanted = false;
    for (; view->wanted && view->wanted_from < view->count && also < ALONG; view->wanted_from++) {
        struct prb_page *other = view->pages[view->wanted_from];
        if (!other->wanted)
            continue;
        other->wanted = false;
        view->wanted--;
        if (!prb_span_empty(other->valid))
            continue;
        missing(view, other, &ranges[n++]);
        along[also++] = other;
    }
    if (!prb_mem_readv_some(view->mem, ranges, n, NULL))
        return;
    took(view, page, ranges, own);
    for (size_t i = 0; i < also; i++)
        took(view, along[i], &ranges[own + i], 1);
}

/* A source that has no whole pages (a callback over some object's bytes) may still have these ones.
 */
static void fetch_exactly(struct prb_view *view, struct prb_page *page, size_t lo, size_t len)
{
    prb_addr addr = (page->number << view->shift) + lo;
    if (prb_mem_read_some(view->mem, addr, page->data + lo, len) == len)
        page->valid = (struct prb_span){(uint16_t)lo, (uint16_t)(lo + len)};
}

static inline bool holds(const struct prb_page *page, size_t lo, size_t hi)
{
    return lo >= page->valid.lo && hi <= page->valid.hi;
}

static const uint8_t *touch(struct prb_page *page, size_t lo, size_t hi)
{
    if (lo < page->touched.lo)
        page->touched.lo = (uint16_t)lo;
    if (hi > page->touched.hi)
        page->touched.hi = (uint16_t)hi;
    return page->data + lo;
}

static __attribute__((noinline)) const uint8_t *get_slowly(struct prb_view *view, uint64_t number,
                                                           size_t lo, size_t len)
{
    struct prb_page *page = find(view, number);
    if (!page && !(page = add(view, number)))
        return NULL;
    if (!holds(page, lo, lo + len))
        fetch(view, page);
    if (!holds(page, lo, lo + len))
        fetch_exactly(view, page, lo, len);
    if (!holds(page, lo, lo + len))
        return NULL;
    view->walked = true;
    return touch(page, lo, lo + len);
}

/* Bytes that lie within one page. */
static inline const uint8_t *get_within(struct prb_view *view, prb_addr addr, size_t len)
{
    size_t lo = within(view, addr);
    struct prb_page *page = find(view, addr >> view->shift);
    if (!page || !holds(page, lo, lo + len))
        return get_slowly(view, addr >> view->shift, lo, len);
    view->walked = true;
    return touch(page, lo, lo + len);
}

/* Pages do not lie side by side here, so what crosses their border is put together. */
static __attribute__((noinline)) const void *get_across(struct prb_view *view, prb_addr addr,
                                                        size_t len)
{
    if (len > PRB_VIEW_MAX || addr > UINT64_MAX - len)
        return NULL;
    if (len > view->across_cap) {
        uint8_t *across = realloc(view->across, len);
        if (!across)
            return NULL;
        view->across = across;
        view->across_cap = len;
    }
    prb_view_prefetch(view, addr, len);
    for (size_t done = 0; done < len;) {
        size_t part = unit_of(view) - within(view, addr + done);
        part = part < len - done ? part : len - done;
        const uint8_t *piece = get_within(view, addr + done, part);
        if (!piece)
            return NULL;
        memcpy(view->across + done, piece, part);
        done += part;
    }
    return view->across;
}

const void *prb_view_get(struct prb_view *view, prb_addr addr, size_t len)
{
    if (len - 1 < unit_of(view) - within(view, addr))
        return get_within(view, addr, len);
    static const uint8_t nothing[1];
    return len ? get_across(view, addr, len) : nothing;
}

bool prb_view_u64(struct prb_view *view, prb_addr addr, uint64_t *out)
{
    const void *word = prb_view_get(view, addr, sizeof *out);
    if (!word)
        return false;
    memcpy(out, word, sizeof *out);
    return true;
}

void prb_view_prefetch(struct prb_view *view, prb_addr addr, size_t len)
{
    if (len == 0 || len > PRB_VIEW_MAX || addr > UINT64_MAX - len)
        return;
    view->asked = true;
    for (prb_addr at = addr, end = addr + len; at < end;) {
        prb_addr page_end = ((at >> view->shift) + 1) << view->shift;
        prb_addr stop = end < page_end || page_end == 0 ? end : page_end;
        struct prb_page *page = find(view, at >> view->shift);
        size_t place = page ? 0 : view->count; /* an old page may be anywhere */
        if (!page && !(page = add(view, at >> view->shift)))
            return;
        size_t lo = within(view, at), hi = lo + (size_t)(stop - at);
        if (prb_span_empty(page->valid) && !page->wanted) {
            page->wanted = true;
            if (!view->wanted++ || place < view->wanted_from)
                view->wanted_from = place;
        }
        prb_span_join(&page->asked, (struct prb_span){(uint16_t)lo, (uint16_t)hi});
        at = stop;
    }
}
