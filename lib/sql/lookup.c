/*
 * Rows by the value of an integer column, so that joins on ids do not compare every row with every
 * other. An order of the rows is made when a column is first looked up; SQLite checks each row
 * again.
 */
#include <stdlib.h>
#include <string.h>

#include "sql/rows.h"

struct sorting {
    const struct prb_rows *rows;
    size_t column;
};

static const struct prb_cell *cell_at(const struct prb_rows *rows, size_t row, size_t column)
{
    return &rows->cells[row * rows->columns + column];
}

/* NULLs first, then ascending. */
static int compare_cell(const struct prb_cell *cell, int64_t value)
{
    if (cell->type != PRB_INTEGER)
        return -1;
    return (cell->integer > value) - (cell->integer < value);
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct sorting *sorting = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct prb_cell *other = cell_at(sorting->rows, y, sorting->column);
    const struct prb_cell *cell = cell_at(sorting->rows, x, sorting->column);
    int order =
        other->type == PRB_INTEGER ? compare_cell(cell, other->integer) : cell->type == PRB_INTEGER;
    return order ? order : (x > y) - (x < y);
}

/* The rows in the order of the column, or NULL when out of memory. */
static const uint32_t *order_by(struct prb_rows *rows, size_t column)
{
    if (!rows->orders)
        rows->orders = calloc(rows->columns, sizeof *rows->orders);
    if (!rows->orders || rows->count > UINT32_MAX)
        return NULL;
    if (!rows->orders[column]) {
        uint32_t *order = malloc((rows->count + 1) * sizeof *order);
        if (!order)
            return NULL;
        for (size_t i = 0; i < rows->count; i++)
            order[i] = (uint32_t)i;
        struct sorting sorting = {rows, column};
        qsort_r(order, rows->count, sizeof *order, compare_rows, &sorting);
        rows->orders[column] = order;
    }
    return rows->orders[column];
}

/* The first place in the order whose cell is not below value; above: not equal to it either. */
static size_t bound(const struct prb_rows *rows, const uint32_t *order, size_t column,
                    int64_t value, bool above)
{
    size_t low = 0, high = rows->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order_of = compare_cell(cell_at(rows, order[middle], column), value);
        if (order_of < 0 || (above && order_of == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool prb_rows_find(struct prb_rows *rows, size_t column, int64_t value, struct prb_row_range *out)
{
    const uint32_t *order = order_by(rows, column);
    if (!order)
        return false;
    out->order = order;
    out->next = bound(rows, order, column, value, false);
    out->end = bound(rows, order, column, value, true);
    return true;
}
