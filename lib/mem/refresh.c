/*
 * Refreshing views: the spans that their walks touched are read again together.
 *
 * A range costs the kernel about 0.4 µs whatever its length (it pins pages), so spans of one page
 * or of neighbouring pages become one range even across views: thread states lie side by side.
 * Bytes come into a staging area, are compared with what the view has, and replace it.
 */
#include <string.h>

#include "mem/view_page.h"

/* Bytes between two spans that are cheaper to read along than to begin a new range (measured: 1 KiB
 * copies in 50 ns). */
#define JOIN_GAP 2048
/* One range at most, so that a page that went away costs only its neighbours. */
#define JOIN_MAX 65536
/* Ranges that are read by one call, and so the staging area: it stays in the cache, and grows with no number
 * of threads. */
#define STAGING 32768
/* Spans are rounded to this, and shrink only when they would lose this much, so that the plan
 * seldom changes. */
#define ROUND 64
#define SHRINK 512
/* Refreshes after which a page that no walk touched is forgotten. */
#define AGE_MAX 2

void prb_plan_deinit(struct prb_plan *plan)
{
    free(plan->spans);
    free(plan->ranges);
    free(plan->owners);
    free(plan->staging);
    *plan = (struct prb_plan){0};
}

static struct prb_span rounded(struct prb_span span)
{
    return (struct prb_span){(uint16_t)(span.lo / ROUND * ROUND),
                             (uint16_t)((span.hi + ROUND - 1) / ROUND * ROUND)};
}

/* The span to read again after a walk that touched (or announced) `now`. */
static struct prb_span follow(struct prb_span kept, struct prb_span now)
{
    now = rounded(now);
    struct prb_span both = now;
    prb_span_join(&both, kept);
    return (both.hi - both.lo) - (now.hi - now.lo) > SHRINK ? now : both;
}

/* Age a page by what the last walk read of it: its span stays, or grows old.  False: forget it. */
static bool settle_page(struct prb_view *view, struct prb_page *page)
{
    struct prb_span now = page->touched;
    prb_span_join(&now, page->asked);
    if (view->walked)
        page->compared = page->touched;
    page->touched = PRB_SPAN_NONE;
    page->asked = PRB_SPAN_NONE;
    page->wanted = false;
    if (prb_span_empty(now)) {
        page->age += view->walked;
        return page->age < AGE_MAX && !prb_span_empty(page->kept);
    }
    page->age = 0;
    struct prb_span kept = follow(page->kept, now);
    if (kept.lo != page->kept.lo || kept.hi != page->kept.hi) {
        page->kept = kept;
        view->generation++;
    }
    return true;
}

/* Without a walk since the last refresh nothing grows old, and the bytes of the walk before are
 * compared again. */
static void settle(struct prb_view *view)
{
    if (!view->walked && !view->asked)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < view->count; i++) {
        struct prb_page *page = view->pages[i];
        if (settle_page(view, page)) {
            view->pages[kept++] = page;
        } else {
            page->next_free = view->free;
            view->free = page;
        }
    }
    view->walked = view->asked = false;
    view->wanted = 0;
    if (kept == view->count)
        return;
    view->count = kept;
    prb_view_rehash(view);
}

static bool plan_serves(const struct prb_plan *plan, struct prb_view *const *views, size_t count)
{
    if (plan->owner_count != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (plan->owners[i].view != views[i] || plan->owners[i].generation != views[i]->generation)
            return false;
    }
    return true;
}

static bool plan_collect(struct prb_plan *plan, struct prb_view *const *views, size_t count)
{
    plan->span_count = plan->owner_count = 0;
    for (size_t v = 0; v < count; v++) {
        if (!PRB_GROW(plan->owners, plan->owner_count, plan->owner_cap))
            return false;
        plan->owners[plan->owner_count++] = (struct prb_plan_owner){views[v], views[v]->generation};
        for (size_t i = 0; i < views[v]->count; i++) {
            struct prb_page *page = views[v]->pages[i];
            if (prb_span_empty(page->kept))
                continue;
            if (!PRB_GROW(plan->spans, plan->span_count, plan->span_cap))
                return false;
            plan->spans[plan->span_count++] =
                (struct prb_planned){.addr = (page->number << views[v]->shift) + page->kept.lo,
                                     .len = (uint32_t)(page->kept.hi - page->kept.lo),
                                     .view = (uint32_t)v,
                                     .page = page,
                                     .late = views[v]->late};
        }
    }
    return true;
}

static int by_order(const void *left, const void *right)
{
    const struct prb_planned *a = left, *b = right;
    if (a->late != b->late)
        return a->late - b->late;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

/* How many ranges from first on are staged together; *bytes_out: all of them. */
static size_t staged(const struct prb_plan *plan, size_t first, size_t *bytes_out)
{
    size_t n = 0, bytes = 0;
    while (first + n < plan->range_count && (!n || bytes + plan->ranges[first + n].len <= STAGING))
        bytes += plan->ranges[first + n++].len;
    *bytes_out = bytes;
    return n;
}

static bool plan_stage(struct prb_plan *plan)
{
    size_t most = 0, bytes;
    for (size_t at = 0; at<plan->range_count; most = bytes> most ? bytes : most)
        at += staged(plan, at, &bytes);
    if (most > plan->staging_cap) {
        uint8_t *staging = realloc(plan->staging, most);
        if (!staging)
            return false;
        plan->staging = staging;
        plan->staging_cap = most;
    }
    for (size_t at = 0; at < plan->range_count;) {
        uint8_t *to = plan->staging;
        for (size_t n = staged(plan, at, &bytes); n; n--, at++) {
            plan->ranges[at].buf = to;
            to += plan->ranges[at].len;
        }
    }
    return true;
}

/* Join sorted spans to ranges. */
static bool plan_join(struct prb_plan *plan)
{
    struct prb_range *range = NULL;
    bool late = false;
    plan->range_count = 0;
    for (size_t i = 0; i < plan->span_count; i++) {
        struct prb_planned *span = &plan->spans[i];
        prb_addr end = span->addr + span->len;
        if (!range || span->late != late || span->addr > range->addr + range->len + JOIN_GAP ||
            end - range->addr > JOIN_MAX) {
            if (!PRB_GROW(plan->ranges, plan->range_count, plan->range_cap))
                return false;
            range = &plan->ranges[plan->range_count++];
            *range = (struct prb_range){.addr = span->addr};
            late = span->late;
        }
        if (end > range->addr + range->len)
            range->len = (size_t)(end - range->addr);
        span->range = (uint32_t)(plan->range_count - 1);
        span->offset = (uint32_t)(span->addr - range->addr);
    }
    return plan_stage(plan);
}

static bool plan_make(struct prb_plan *plan, struct prb_view *const *views, size_t count,
                      struct prb_error *err)
{
    if (plan_serves(plan, views, count))
        return true;
    bool ok = plan_collect(plan, views, count);
    if (ok && plan->span_count)
        qsort(plan->spans, plan->span_count, sizeof *plan->spans, by_order);
    if (ok && plan_join(plan))
        return true;
    plan->owner_count = 0;
    return prb_nomem(err);
}

/* Put a span that was read into its page.  False when a byte differs that the last walk saw. */
static bool take(const struct prb_planned *span, const struct prb_range *range)
{
    struct prb_page *page = span->page;
    struct prb_span old = page->valid, seen = page->compared;
    if (span->offset + (size_t)span->len > range->got) {
        page->valid = (struct prb_span){0, 0};
        return prb_span_empty(seen);
    }
    const uint8_t *fresh = (const uint8_t *)range->buf + span->offset;
    bool same =
        prb_span_empty(seen) ||
        (seen.lo >= old.lo && seen.hi <= old.hi && seen.lo >= page->kept.lo &&
         seen.hi <= page->kept.hi &&
         memcmp(page->data + seen.lo, fresh + (seen.lo - page->kept.lo), seen.hi - seen.lo) == 0);
    memcpy(page->data + page->kept.lo, fresh, span->len);
    page->valid = page->kept;
    return same;
}

bool prb_view_refresh(struct prb_view *const *views, size_t count, bool *same_out,
                      struct prb_error *err)
{
    if (count == 0)
        return true;
    for (size_t i = 0; i < count; i++)
        settle(views[i]);
    struct prb_plan *plan = &views[0]->plan;
    if (!plan_make(plan, views, count, err))
        return false;
    for (size_t i = 0; same_out && i < count; i++)
        same_out[i] = true;
    for (size_t at = 0, i = 0, bytes; at < plan->range_count;) {
        size_t n = staged(plan, at, &bytes);
        if (!prb_mem_readv_some(views[0]->mem, plan->ranges + at, n, err))
            return false;
        at += n;
        for (; i < plan->span_count && plan->spans[i].range < at; i++) {
            const struct prb_planned *span = &plan->spans[i];
            if (!take(span, &plan->ranges[span->range]) && same_out)
                same_out[span->view] = false;
        }
    }
    return true;
}
