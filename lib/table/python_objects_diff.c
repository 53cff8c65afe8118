/* python.objects_diff(seconds): which types grow, and who keeps their objects. */
#include <stdlib.h>

#include "base/clock.h"
#include "inspect/referrers.h"
#include "inspect/tally.h"
#include "py/object/reader.h"
#include "table/shared/duration.h"
#include "table/shared/heap.h"

#define SECONDS 1.0

static const struct prb_column columns[] = {
    {"interpreter", PRB_INTEGER, "id", "whose objects they are; 0: the main one"},
    {"type", PRB_TEXT, "", "module and name of their class"},
    {"count", PRB_INTEGER, "count", "objects of exactly this class, at the end"},
    {"bytes", PRB_INTEGER, "bytes", "as in python.objects, at the end"},
    {"delta_count", PRB_INTEGER, "count", "how many more than at the beginning"},
    {"delta_bytes", PRB_INTEGER, "bytes", "the same of their bytes"},
    {"top_referrer", PRB_TEXT, "",
     "what refers to most of them, \"list in Trainer.history\": of the 16 types that grew most; "
     "NULL: nothing that the collector knows"},
    {"seconds", PRB_REAL, "s", "argument: between the two readings; 1 when not given",
     .hidden = true},
    {0},
};

PRB_DEFINE_AUTO_PTR(prb_heap, struct prb_heap, prb_heap_free)

struct growth {
    const struct prb_tally *now;
    int64_t count, bytes; /* more than before */
    const char *referrer;
};

static int by_growth(const void *a, const void *b)
{
    const struct growth *x = a, *y = b;
    int64_t of_x = x->count, of_y = y->count;
    return of_x < of_y ? 1 : of_x > of_y ? -1 : x->now->type < y->now->type ? -1 : 1;
}

/* What changed between two readings; NULL: out of memory. */
static struct growth *compare(const struct prb_tallies *before, const struct prb_tallies *after)
{
    struct growth *growths = calloc(after->count + 1, sizeof *growths);
    for (size_t i = 0; growths && i < after->count; i++) {
        const struct prb_tally *now = &after->items[i], *old = prb_tallies_find(before, now->type);
        growths[i] = (struct growth){.now = now,
                                     .count = now->count - (old ? old->count : 0),
                                     .bytes = now->bytes - (old ? old->bytes : 0)};
    }
    if (growths && after->count)
        qsort(growths, after->count, sizeof *growths, by_growth);
    return growths;
}

static bool add_referrers(struct prb_rows *rows, const struct prb_heap_part *part,
                          struct growth *growths, size_t count, struct prb_arena *arena,
                          struct prb_error *err)
{
    prb_addr types[PRB_REFERRED_TYPES_MAX];
    const char *found[PRB_REFERRED_TYPES_MAX] = {NULL};
    size_t wanted = 0;
    while (wanted < count && wanted < PRB_REFERRED_TYPES_MAX && growths[wanted].count > 0) {
        types[wanted] = growths[wanted].now->type;
        wanted++;
    }
    if (wanted &&
        !prb_referrers_find(part, types, wanted, prb_rows_in_time, rows, arena, found, err))
        return false;
    for (size_t k = 0; k < wanted; k++)
        growths[k].referrer = found[k];
    return true;
}

static void add_row(struct prb_rows *rows, const struct prb_heap_part *part,
                    const struct growth *growth)
{
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    if (!growth->now->known)
        return; /* torn: no class stands there */
    prb_type_full_name(part->runtime->objects, growth->now->known, &name);
    prb_row_begin(rows);
    prb_row_int(rows, part->interpreter);
    prb_row_text(rows, name.data);
    prb_row_int(rows, growth->now->count);
    prb_row_int(rows, growth->now->bytes);
    prb_row_int(rows, growth->count);
    prb_row_int(rows, growth->bytes);
    prb_row_text(rows, growth->referrer);
}

static bool fill_part(struct prb_rows *rows, const struct prb_tallies *before,
                      const struct prb_heap_part *part, bool bytes, struct prb_error *err)
{
    PRB_AUTO(prb_tallies) struct prb_tallies after = {0};
    PRB_AUTO(prb_arena) struct prb_arena arena = {0};
    if (!prb_tallies_count(part, bytes, &after, err))
        return false;
    PRB_AUTO_FREE struct growth *growths = compare(before, &after);
    if (!growths)
        return prb_nomem(err);
    if (prb_rows_wants(rows, "top_referrer") &&
        !add_referrers(rows, part, growths, after.count, &arena, err))
        return false;
    for (size_t i = 0; i < after.count; i++)
        add_row(rows, part, &growths[i]);
    return true;
}

static struct prb_heap *take(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_heap *heap = prb_heap_take(prb_rows_target(rows), err);
    if (heap && heap->why)
        prb_rows_warn(rows, "some objects may be missing: %s", heap->why);
    return heap;
}

/* The first reading's counts, a part each. */
static bool count_first(const struct prb_heap *heap, bool bytes, struct prb_tallies *out,
                        struct prb_error *err)
{
    for (size_t i = 0; i < heap->part_count; i++)
        if (!prb_tallies_count(&heap->parts[i], bytes, &out[i], err))
            return false;
    return true;
}

static const struct prb_tallies *first_of(const struct prb_heap *before,
                                          const struct prb_tallies *counts,
                                          const struct prb_heap_part *part)
{
    static const struct prb_tallies none;
    for (size_t i = 0; i < before->part_count; i++)
        if (before->parts[i].runtime == part->runtime &&
            before->parts[i].interpreter == part->interpreter)
            return &counts[i];
    return &none;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    double seconds = SECONDS;
    bool bytes = prb_rows_wants(rows, "bytes") || prb_rows_wants(rows, "delta_bytes");
    if (!prb_rows_seconds(rows, &seconds, err) ||
        !prb_rows_stacks(rows, err)) /* which interpreters there are */
        return false;
    double until = prb_clock_s() + seconds;
    PRB_AUTO(prb_heap) struct prb_heap *before = take(rows, err);
    PRB_AUTO_FREE struct prb_tallies *counts =
        before ? calloc(before->part_count + 1, sizeof *counts) : NULL;
    if (!counts)
        return before ? prb_nomem(err) : false;
    bool good = count_first(before, bytes, counts, err);
    if (good)
        prb_clock_sleep_until(until);
    PRB_AUTO(prb_heap) struct prb_heap *after = good ? take(rows, err) : NULL;
    for (size_t i = 0; after && good && i < after->part_count; i++)
        good = fill_part(rows, first_of(before, counts, &after->parts[i]), &after->parts[i], bytes,
                         err);
    for (size_t i = 0; i < before->part_count; i++)
        prb_tallies_deinit(&counts[i]);
    return after && good && prb_proc_check(prb_rows_target(rows)->proc, err);
}

const struct prb_table prb_table_python_objects_diff = {
    .schema = "python",
    .name = "objects_diff",
    .doc = "which types have more objects than objects_diff(seconds) found before, and who keeps "
           "them; nothing is loaded",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
