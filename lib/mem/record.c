/*
 * A source that saves what is read through it, page by page: for snapshots, and to read a program
 * at once that is stopped for a moment only.
 *
 * Reads go to the inner source every time, so that a second reading of a living target sees what
 * changed; the page has the bytes of the latest reading, which is the one that decoding accepted in
 * the end.
 */
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "mem/mem.h"

#define PAGE ((size_t)PRB_RECORD_PAGE)
/* 256 MiB; decoding touches some hundred pages. */
#define PAGES_MAX 65536

struct page {
    uint64_t number;
    size_t len;       /* bytes from its start that are known */
    uint64_t reading; /* when it was first read, by number */
    uint8_t data[PAGE];
};

struct record {
    struct prb_mem base;
    struct prb_mem *inner;
    struct page **pages;
    size_t count, cap;
    struct prb_hash_map by_number; /* pages by number + 1 */
    uint64_t reading;
    enum prb_record_mode mode;
    size_t late; /* pages that were added in mode STILL */
};

static struct page *find(const struct record *self, uint64_t number)
{
    return prb_hash_map_pointer(&self->by_number, number + 1);
}

static bool add(struct record *self, uint64_t number, struct prb_error *err)
{
    if (self->count == PAGES_MAX)
        return prb_fail(err, PRB_IO, "more than %u MiB would have to be recorded", PAGES_MAX / 256);
    struct prb_hash_slot *slot = prb_hash_map_add(&self->by_number, number + 1);
    struct page *page = NULL;
    if (!slot || !PRB_GROW(self->pages, self->count, self->cap) || !(page = malloc(sizeof *page)))
        return prb_nomem(err);
    page->number = number;
    page->len = 0;
    page->reading = self->reading;
    self->pages[self->count++] = page;
    slot->pointer = page;
    return true;
}

/* Add the pages of a range that are new.  *all_new_out: whether they all are of this reading. */
static bool add_range(struct record *self, const struct prb_range *range, bool *all_new_out,
                      struct prb_error *err)
{
    *all_new_out = true;
    if (range->len == 0)
        return true;
    uint64_t first = range->addr / PAGE;
    uint64_t last = range->len - 1 > UINT64_MAX - range->addr
                        ? UINT64_MAX / PAGE
                        : (range->addr + (range->len - 1)) / PAGE;
    if (last - first >= PAGES_MAX)
        return prb_fail(err, PRB_IO, "a range of %zu bytes is too long to be recorded", range->len);
    for (uint64_t number = first;; number++) {
        const struct page *page = find(self, number);
        if (!page && !add(self, number, err))
            return false;
        *all_new_out &= !page || page->reading == self->reading;
        if (number == last)
            return true;
    }
}

/* Read the pages that were added since the first one given, whole. */
static bool fill_pages(struct record *self, size_t from, struct prb_error *err)
{
    size_t count = self->count - from;
    if (count == 0)
        return true;
    PRB_AUTO_FREE struct prb_range *ranges = calloc(count, sizeof *ranges);
    if (!ranges)
        return prb_nomem(err);
    for (size_t i = 0; i < count; i++) {
        struct page *page = self->pages[from + i];
        ranges[i] = (struct prb_range){.addr = page->number * PAGE, .buf = page->data, .len = PAGE};
    }
    if (!prb_mem_readv_some(self->inner, ranges, count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        self->pages[from + i]->len = ranges[i].got;
    return true;
}

/* Copy between a range and the pages it lies in: out of the pages, or into them. */
static void exchange(struct record *self, struct prb_range *range, bool out)
{
    size_t done = 0, limit = out ? range->len : range->got;
    while (done < limit) {
        prb_addr at = range->addr + done;
        size_t lo = at % PAGE, part = PAGE - lo;
        part = part < limit - done ? part : limit - done;
        struct page *page = find(self, at / PAGE);
        size_t known = out ? (page->len > lo ? page->len - lo : 0) : part;
        part = part < known ? part : known;
        if (part == 0)
            break;
        if (out) {
            memcpy((uint8_t *)range->buf + done, page->data + lo, part);
        } else if (lo <= page->len) {
            memcpy(page->data + lo, (uint8_t *)range->buf + done, part);
            page->len = page->len > lo + part ? page->len : lo + part;
        }
        done += part;
        if (out && page->len < PAGE)
            break;
    }
    if (out)
        range->got = done;
}

/* Ranges whose pages were known before are read again, in one call, and their pages brought up to
 * date. */
static bool read_again(struct record *self, struct prb_range *ranges, const bool *fresh,
                       size_t count, struct prb_error *err)
{
    PRB_AUTO_FREE struct prb_range *again = malloc(count ? count * sizeof *again : 1);
    if (!again)
        return prb_nomem(err);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!fresh[i])
            again[n++] = ranges[i];
    }
    if (n && !prb_mem_readv_some(self->inner, again, n, err))
        return false;
    for (size_t i = 0, k = 0; i < count; i++) {
        if (fresh[i])
            continue;
        ranges[i].got = again[k++].got;
        exchange(self, &ranges[i], false);
    }
    return true;
}

static bool record_readv(struct prb_mem *mem, struct prb_range *ranges, size_t count,
                         struct prb_error *err)
{
    struct record *self = (struct record *)mem;
    if (self->mode == PRB_RECORD_OFF)
        return prb_mem_readv_some(self->inner, ranges, count, err);
    self->reading++;
    size_t from = self->count;
    PRB_AUTO_FREE bool *fresh = calloc(count ? count : 1, sizeof *fresh);
    if (!fresh)
        return prb_nomem(err);
    for (size_t i = 0; i < count; i++) {
        if (!add_range(self, &ranges[i], &fresh[i], err))
            return false;
    }
    if (!fill_pages(self, from, err))
        return false;
    bool still = self->mode == PRB_RECORD_STILL;
    self->late += still ? self->count - from : 0;
    for (size_t i = 0; i < count; i++) {
        if (fresh[i] || still)
            exchange(self, &ranges[i], true);
    }
    return still || read_again(self, ranges, fresh, count, err);
}

static void forget(struct record *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->pages[i]);
    self->count = 0;
    prb_hash_map_clear(&self->by_number);
}

static void record_free(struct prb_mem *mem)
{
    struct record *self = (struct record *)mem;
    forget(self);
    free(self->pages);
    prb_hash_map_deinit(&self->by_number);
    free(self);
}

static const struct prb_mem_ops record_ops = {"record", record_readv, record_free};

struct prb_mem *prb_mem_record_new(struct prb_mem *inner, struct prb_error *err)
{
    struct record *self = calloc(1, sizeof *self);
    if (!self)
        return PRB_NULL(prb_nomem(err));
    *self = (struct record){{&record_ops, 0, 0}, .inner = inner, .mode = PRB_RECORD_ON};
    return &self->base;
}

void prb_mem_record_set(struct prb_mem *record, enum prb_record_mode mode)
{
    struct record *self = (struct record *)record;
    self->mode = mode;
    self->late = 0;
    if (mode == PRB_RECORD_OFF)
        forget(self);
}

bool prb_mem_record_renew(struct prb_mem *record, struct prb_error *err)
{
    return fill_pages((struct record *)record, 0, err);
}

size_t prb_mem_record_late(const struct prb_mem *record)
{
    return ((const struct record *)record)->late;
}

size_t prb_mem_record_pages(const struct prb_mem *record)
{
    return ((const struct record *)record)->count;
}

void prb_mem_record_cut(struct prb_mem *record, size_t pages)
{
    struct record *self = (struct record *)record;
    if (self->count <= pages)
        return;
    for (size_t i = pages; i < self->count; i++)
        free(self->pages[i]);
    self->count = pages;
    prb_hash_map_clear(&self->by_number);
    /* It has room for more than that: nothing is allocated. */
    for (size_t i = 0; i < self->count; i++)
        prb_hash_map_add(&self->by_number, self->pages[i]->number + 1)->pointer = self->pages[i];
}

void prb_mem_record_blank(struct prb_mem *record, prb_addr start, prb_addr end)
{
    struct record *self = (struct record *)record;
    for (size_t i = 0; i < self->count; i++) {
        prb_addr first = self->pages[i]->number * PAGE, last = first + PAGE;
        prb_addr lo = start > first ? start : first, hi = end < last ? end : last;
        if (lo < hi)
            memset(self->pages[i]->data + (lo - first), 0, (size_t)(hi - lo));
    }
}

/* Put a run's bytes back into the pages it was made of, the last of which is before `end`. */
static void put_back(struct record *self, size_t end, const struct prb_buf *run)
{
    size_t left = run->len;
    while (left) {
        struct page *page = self->pages[--end];
        left -= page->len;
        memcpy(page->data, run->data + left, page->len);
    }
}

static int by_number(const void *left, const void *right)
{
    const struct page *a = *(struct page *const *)left, *b = *(struct page *const *)right;
    return a->number < b->number ? -1 : a->number > b->number;
}

struct runs {
    bool (*each)(void *context, prb_addr addr, const void *data, size_t len);
    bool (*change)(void *context, void *data, size_t len);
    void *context;
};

static bool each_run(struct record *self, const struct runs *runs)
{
    PRB_AUTO(prb_buf) struct prb_buf run = {0};
    if (self->count)
        qsort(self->pages, self->count, sizeof *self->pages, by_number);
    for (size_t i = 0; i < self->count; i++) {
        const struct page *page = self->pages[i];
        prb_buf_add(&run, page->data, page->len);
        if (!prb_buf_ok(&run))
            return false;
        bool joined = page->len == PAGE && i + 1 < self->count && self->pages[i + 1]->len &&
                      self->pages[i + 1]->number == page->number + 1;
        if (joined)
            continue;
        prb_addr end = page->number * PAGE + page->len;
        if (run.len && runs->each && !runs->each(runs->context, end - run.len, run.data, run.len))
            return false;
        if (run.len && runs->change && runs->change(runs->context, run.data, run.len))
            put_back(self, i + 1, &run);
        run.len = 0;
    }
    return true;
}

bool prb_mem_record_each(struct prb_mem *record,
                         bool (*each)(void *context, prb_addr addr, const void *data, size_t len),
                         void *context)
{
    return each_run((struct record *)record, &(struct runs){.each = each, .context = context});
}

bool prb_mem_record_change(struct prb_mem *record,
                           bool (*change)(void *context, void *data, size_t len), void *context)
{
    return each_run((struct record *)record, &(struct runs){.change = change, .context = context});
}
