/* Symbols of one table by address (symbol_index.h). */
#include "proc/symbol_index.h"

#include <stdlib.h>

#define DIGIT 11 /* bits of a pass of the sort: three are 32 */
#define DIGITS (1u << DIGIT)

bool prb_symbol_index_begin(struct prb_symbol_index *index, size_t cap, uint64_t base)
{
    *index = (struct prb_symbol_index){.cap = cap, .base = base};
    index->items = malloc((cap + 1) * sizeof *index->items);
    return index->items != NULL;
}

void prb_symbol_index_deinit(struct prb_symbol_index *index)
{
    free(index->items);
    *index = (struct prb_symbol_index){0};
}

void prb_symbol_index_add(struct prb_symbol_index *index, uint64_t value, uint64_t size,
                          uint32_t number)
{
    uint64_t from = value - index->base;
    if (index->count >= index->cap || value < index->base || from > UINT32_MAX) {
        index->unfit = true;
        return;
    }
    uint32_t reach = size < UINT32_MAX - from ? (uint32_t)(from + size) : UINT32_MAX;
    /* From the end: those of one value, which the sort leaves in their order, then come the first
     * first. */
    index->items[index->cap - ++index->count] =
        (struct prb_symbol_at){(uint32_t)from, reach, number};
}

static void sort_by_digit(const struct prb_symbol_at *from, struct prb_symbol_at *to, size_t count,
                          unsigned shift)
{
    uint32_t starts[DIGITS] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++)
        starts[from[i].value >> shift & (DIGITS - 1)]++;
    for (size_t i = 0; i < DIGITS; i++) {
        uint32_t n = starts[i];
        starts[i] = sum;
        sum += n;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[from[i].value >> shift & (DIGITS - 1)]++] = from[i];
}

bool prb_symbol_index_end(struct prb_symbol_index *index)
{
    size_t count = index->count;
    struct prb_symbol_at *sorted = malloc((count + 1) * sizeof *sorted);
    if (index->unfit || !sorted) {
        free(sorted);
        return false;
    }
    sort_by_digit(index->items + (index->cap - count), sorted, count, 0);
    sort_by_digit(sorted, index->items, count, DIGIT);
    sort_by_digit(index->items, sorted, count, 2 * DIGIT);
    free(index->items);
    index->items = sorted;
    for (size_t i = 1; i < count; i++)
        if (sorted[i].reach < sorted[i - 1].reach)
            sorted[i].reach = sorted[i - 1].reach;
    return true;
}

/* How many begin at addr or before. */
static size_t begun(const struct prb_symbol_index *index, uint64_t addr)
{
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->items[middle].value <= addr - index->base)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool prb_symbol_index_next(const struct prb_symbol_index *index, uint64_t addr, size_t *at,
                           uint32_t *number_out)
{
    if (addr < index->base)
        return false;
    size_t i = *at == SIZE_MAX ? begun(index, addr) : *at;
    /* A reach of UINT32_MAX may stand for a longer one. */
    if (!i || (index->items[i - 1].reach <= addr - index->base &&
               index->items[i - 1].reach != UINT32_MAX))
        return false;
    *at = i - 1;
    *number_out = index->items[i - 1].number;
    return true;
}
