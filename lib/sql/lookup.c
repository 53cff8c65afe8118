/*
 * Rows by the values of integer columns, so that joins on ids do not compare every row with every
 * other: of a join on rank and step, one column alone would leave thousands.  An order of the rows
 * is made when its columns are first looked up; SQLite checks each row again.
 */
#include <stdlib.h>
#include <string.h>

#include "sql/rows.h"

/* What rows are compared by: the cells of an order's columns. */
struct sorting {
    const struct prb_rows *rows;
    size_t slots[PRB_LOOKUPS_MAX], count;
};

static const struct prb_cell *cell_at(const struct sorting *sorting, size_t row, size_t i)
{
    return &sorting->rows->cells[row * sorting->rows->stored + sorting->slots[i]];
}

/* NULLs (and what else is not an integer) first, then ascending. */
static int compare_cell(const struct prb_cell *cell, int64_t value)
{
    if (cell->type != PRB_INTEGER)
        return -1;
    return (cell->integer > value) - (cell->integer < value);
}

static int compare_cells(const struct sorting *sorting, uint32_t x, uint32_t y)
{
    int order = 0;
    for (size_t i = 0; i < sorting->count && !order; i++) {
        const struct prb_cell *cell = cell_at(sorting, x, i), *other = cell_at(sorting, y, i);
        order = other->type == PRB_INTEGER ? compare_cell(cell, other->integer)
                                           : cell->type == PRB_INTEGER;
    }
    return order;
}

static int compare_rows(const void *a, const void *b, void *context)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = compare_cells(context, x, y);
    return order ? order : (x > y) - (x < y);
}

/* What comes by rank and step often is in that order already. */
static bool is_sorted(const struct sorting *sorting)
{
    for (size_t i = 1; i < sorting->rows->count; i++)
        if (compare_cells(sorting, (uint32_t)i - 1, (uint32_t)i) > 0)
            return false;
    return true;
}

static uint32_t *sort(const struct sorting *sorting)
{
    size_t count = sorting->rows->count;
    uint32_t *order = count < UINT32_MAX ? malloc((count + 1) * sizeof *order) : NULL;
    for (size_t i = 0; order && i < count; i++)
        order[i] = (uint32_t)i;
    if (order && !is_sorted(sorting))
        qsort_r(order, count, sizeof *order, compare_rows, (void *)sorting);
    return order;
}

/* The rows in the order of the columns, or NULL. */
static const uint32_t *order_by(struct prb_rows *rows, const struct sorting *sorting,
                                const size_t *columns)
{
    size_t count = sorting->count;
    for (size_t i = 0; i < rows->order_count; i++)
        if (rows->orders[i].count == count &&
            memcmp(rows->orders[i].columns, columns, count * sizeof *columns) == 0)
            return rows->orders[i].rows;
    if (rows->order_count == PRB_ORDERS_MAX)
        return NULL;
    struct prb_order order = {.count = count, .rows = sort(sorting)};
    if (!order.rows)
        return NULL;
    memcpy(order.columns, columns, count * sizeof *columns);
    rows->orders[rows->order_count++] = order;
    return order.rows;
}

/* The first place in the order whose cells are not below the values; above: not equal either. */
static size_t bound(const struct sorting *sorting, const uint32_t *order, const int64_t *values,
                    bool above)
{
    size_t low = 0, high = sorting->rows->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order_of = 0;
        for (size_t i = 0; i < sorting->count && !order_of; i++)
            order_of = compare_cell(cell_at(sorting, order[middle], i), values[i]);
        if (order_of < 0 || (above && order_of == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool prb_rows_find(struct prb_rows *rows, const size_t *columns, const int64_t *values,
                   size_t count, struct prb_row_range *out)
{
    struct sorting sorting = {.rows = rows, .count = count};
    for (size_t i = 0; i < count; i++) {
        if (rows->slots[columns[i]] < 0)
            return false;
        sorting.slots[i] = (size_t)rows->slots[columns[i]];
    }
    const uint32_t *order = order_by(rows, &sorting, columns);
    if (!order)
        return false;
    out->order = order;
    out->next = bound(&sorting, order, values, false);
    out->end = bound(&sorting, order, values, true);
    return true;
}
