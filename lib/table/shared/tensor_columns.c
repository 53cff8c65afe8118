/* Cells of tensors and of their statistics. */
#include "table/shared/tensor_columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "table/shared/thread_columns.h"

enum { TENSOR_CELLS = 10, STATISTICS_CELLS = 8 };

static void add_nulls(struct prb_rows *rows, int count)
{
    while (count-- > 0)
        prb_row_null(rows);
}

static void add_shape(struct prb_rows *rows, const struct prb_tensor *tensor)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    prb_buf_addc(&text, '[');
    for (unsigned i = 0; i < tensor->dims; i++)
        prb_buf_addf(&text, "%s%" PRId64, i ? ", " : "", tensor->shape[i]);
    prb_buf_addc(&text, ']');
    prb_row_text(rows, prb_buf_ok(&text) ? text.data : NULL);
}

void prb_row_tensor(struct prb_rows *rows, const struct prb_tensor *tensor)
{
    int64_t bytes;
    if (!tensor) {
        add_nulls(rows, TENSOR_CELLS);
        return;
    }
    add_shape(rows, tensor);
    prb_row_text(rows, tensor->dtype);
    prb_row_text(rows, tensor->device);
    prb_row_int(rows, tensor->numel);
    if (__builtin_mul_overflow(tensor->numel, (int64_t)tensor->item_size, &bytes))
        prb_row_null(rows);
    else
        prb_row_int(rows, bytes);
    prb_row_text(rows, tensor->layout);
    prb_row_int(rows, tensor->requires_grad);
    prb_row_int_unless(rows, tensor->version, -1);
    prb_row_int_unless(rows, (int64_t)tensor->storage, 0);
    prb_row_int_unless(rows, tensor->storage_size, -1);
}

bool prb_rows_statistics(const struct prb_rows *rows)
{
    const struct prb_value *value = prb_rows_argument(rows, "with_statistics");
    return value && value->type == PRB_INTEGER && value->integer;
}

void prb_row_real_unless_nan(struct prb_rows *rows, double value)
{
    if (isnan(value))
        prb_row_null(rows);
    else
        prb_row_real(rows, value);
}

void prb_row_statistics(struct prb_rows *rows, struct prb_mem *mem, const struct prb_tensor *tensor,
                        char *why_out, size_t cap)
{
    struct prb_statistics made;
    struct prb_error err = {0};
    *why_out = '\0';
    if (!tensor || !prb_rows_statistics(rows)) {
        add_nulls(rows, STATISTICS_CELLS);
        return;
    }
    if (!prb_tensor_statistics_in(mem, tensor, NULL, &made, &err)) {
        add_nulls(rows, STATISTICS_CELLS);
        snprintf(why_out, cap, "%s", err.text);
        return;
    }
    prb_row_int(rows, made.nan);
    prb_row_int(rows, made.inf);
    prb_row_int(rows, made.zero);
    prb_row_real_unless_nan(rows, made.min);
    prb_row_real_unless_nan(rows, made.max);
    prb_row_real_unless_nan(rows, made.mean);
    prb_row_real_unless_nan(rows, made.std);
    prb_row_real_unless_nan(rows, made.norm);
}

bool prb_grad_statistics(struct prb_objects *objects, struct prb_mem *mem,
                         const struct prb_tensor *tensor, struct prb_statistics *out)
{
    struct prb_tensor grad;
    return prb_torch_grad(objects, tensor, &grad, NULL) &&
           prb_tensor_statistics_in(mem, &grad, NULL, out, NULL);
}
