/* Sends and receipts: see transfers.h. */
#include "table/shared/transfers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LATE 2e-4 /* s: torch labels a send once the bytes are on their way */
#define RARE 4    /* one in so many may be labelled even later: its thread lost the CPU meanwhile */

/* Those of one rank and direction, by time. */
struct side {
    const struct prb_collective **items;
    size_t count;
};

static void side_free(struct side *side) { free(side->items); }
PRB_DEFINE_AUTO(side, struct side, side_free)

static int by_begin(const void *a, const void *b)
{
    double x = (*(const struct prb_collective *const *)a)->begin;
    double y = (*(const struct prb_collective *const *)b)->begin;
    return (x > y) - (x < y);
}

static bool gather(const struct prb_job *job, size_t rank, const char *op, struct side *out,
                   struct prb_error *err)
{
    out->items = calloc(job->transfer_count + 1, sizeof *out->items);
    if (!out->items)
        return prb_nomem(err);
    for (size_t i = 0; i < job->transfer_count; i++)
        if (job->transfers[i].rank == rank && strcmp(job->transfers[i].op, op) == 0 &&
            isfinite(job->transfers[i].end))
            out->items[out->count++] = &job->transfers[i];
    qsort(out->items, out->count, sizeof *out->items, by_begin);
    return true;
}

/* The first receipt from `at` on that has not ended before this send begins. */
static size_t first_after(const struct prb_job *job, const struct prb_collective *send,
                          const struct side *receipts, size_t at)
{
    for (; at < receipts->count; at++) {
        const struct prb_collective *receipt = receipts->items[at];
        double offset = 0, error = 0;
        prb_job_offset(job, send, receipt->rank, send->rank, &offset, &error);
        if (!(receipt->end < send->begin + offset - error - LATE))
            break;
    }
    return at;
}

/* How many sends have a receipt when the places differ by so much. */
static ptrdiff_t pairs_of(size_t sends, size_t receipts, ptrdiff_t by)
{
    ptrdiff_t first = by < 0 ? -by : 0, end = (ptrdiff_t)receipts - by;
    end = end < (ptrdiff_t)sends ? end : (ptrdiff_t)sends;
    return end > first ? end - first : 0;
}

/*
 * Both are in the order in which they went over the wire, but recording may have begun earlier on one side: send i
 * belongs to receipt i + d.  d is the least with which hardly a receipt ends before its send begins; for send i that
 * speaks against -i to first_after - i - 1.
 */
static bool find_difference(const struct prb_job *job, const struct side *sends,
                            const struct side *receipts, ptrdiff_t *out, struct prb_error *err)
{
    size_t all = sends->count + receipts->count + 2, at = 0;
    ptrdiff_t least = -(ptrdiff_t)sends->count, covers = 0;
    PRB_AUTO_FREE ptrdiff_t *changes = calloc(all, sizeof *changes);
    if (!changes)
        return prb_nomem(err);
    for (size_t i = 0; i < sends->count; i++) {
        at = first_after(job, sends->items[i], receipts, at);
        changes[sends->count - i]++;
        changes[sends->count - i + at]--;
    }
    for (size_t i = 1; i < all; i++) {
        covers += changes[i];
        *out = least + (ptrdiff_t)i;
        if (covers <= pairs_of(sends->count, receipts->count, *out) / RARE)
            break;
    }
    return true;
}

static size_t match(const struct side *sends, const struct side *receipts, ptrdiff_t by,
                    struct prb_transfer *out)
{
    size_t count = 0;
    for (size_t i = 0; i < sends->count; i++) {
        ptrdiff_t at = (ptrdiff_t)i + by;
        if (at >= 0 && (size_t)at < receipts->count)
            out[count++] = (struct prb_transfer){sends->items[i], receipts->items[at]};
    }
    return count;
}

bool prb_job_transfers(const struct prb_job *job, struct prb_transfer **out, size_t *count_out,
                       struct prb_error *err)
{
    PRB_AUTO_FREE struct prb_transfer *list = calloc(job->transfer_count + 1, sizeof *list);
    *out = NULL;
    *count_out = 0;
    if (!list)
        return prb_nomem(err);
    for (size_t from = 0; job->rank_count == 2 && job->world_size == 2 && from < 2; from++) {
        PRB_AUTO(side) struct side sends = {0}, receipts = {0};
        ptrdiff_t by = 0;
        if (!gather(job, from, "send", &sends, err) ||
            !gather(job, 1 - from, "recv", &receipts, err) ||
            !find_difference(job, &sends, &receipts, &by, err))
            return false;
        *count_out += match(&sends, &receipts, by, list + *count_out);
    }
    *out = PRB_STEAL(list);
    return true;
}
