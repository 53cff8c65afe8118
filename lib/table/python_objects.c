/* python.objects: what the garbage collector knows, counted by type. */
#include <stdlib.h>

#include "inspect/tally.h"
#include "py/object/reader.h"
#include "table/shared/heap.h"

static const struct prb_column columns[] = {
    {"interpreter", PRB_INTEGER, "id", "whose objects they are; 0: the main one"},
    {"type", PRB_TEXT, "", "module and name of their class"},
    {"count", PRB_INTEGER, "count", "objects of exactly this class"},
    {"bytes", PRB_INTEGER, "bytes",
     "of the objects themselves and of the tables of lists, dicts and sets; not of what they "
     "refer to"},
    {"young", PRB_INTEGER, "count", "of them, those that no garbage collection has seen yet"},
    {"type_address", PRB_INTEGER, "addr", "of the class"},
    {0},
};

static int by_count(const void *a, const void *b)
{
    const struct prb_tally *x = a, *y = b;
    return x->count < y->count ? 1 : x->count > y->count ? -1 : x->type < y->type ? -1 : 1;
}

static void add_tally(struct prb_rows *rows, const struct prb_heap_part *part,
                      const struct prb_tally *tally, bool bytes)
{
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    if (!tally->known)
        return; /* torn: no class stands there */
    prb_type_full_name(part->runtime->objects, tally->known, &name);
    prb_row_begin(rows);
    prb_row_int(rows, part->interpreter);
    prb_row_text(rows, name.data);
    prb_row_int(rows, tally->count);
    if (bytes)
        prb_row_int(rows, tally->bytes);
    else
        prb_row_null(rows);
    prb_row_int(rows, tally->young);
    prb_row_int(rows, (int64_t)tally->type);
}

static bool fill_part(struct prb_rows *rows, const struct prb_heap_part *part,
                      struct prb_error *err)
{
    bool bytes = prb_rows_wants(rows, "bytes");
    PRB_AUTO(prb_tallies) struct prb_tallies tallies = {0};
    if (!prb_tallies_count(part, bytes, &tallies, err))
        return false;
    if (tallies.count)
        qsort(tallies.items, tallies.count, sizeof *tallies.items, by_count);
    for (size_t i = 0; i < tallies.count; i++)
        add_tally(rows, part, &tallies.items[i], bytes);
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_heap *heap = prb_rows_heap(rows, err);
    for (size_t i = 0; heap && i < heap->part_count; i++)
        if (!fill_part(rows, &heap->parts[i], err))
            return false;
    return heap && prb_proc_check(prb_rows_target(rows)->proc, err);
}

const struct prb_table prb_table_python_objects = {
    .schema = "python",
    .name = "objects",
    .doc = "the objects that the garbage collector knows, by type",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
