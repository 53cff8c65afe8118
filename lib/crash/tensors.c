/*
 * The tensors of the thread that crashed: a dump does not hold their elements, so what they were is
 * kept as rows, with their statistics where reading them takes no more than some milliseconds.
 */
#include <math.h>
#include <string.h>

#include "crash/crash.h"

#define VARIABLES_MAX 500
#define FRAMES_MAX 50                 /* innermost ones */
#define ELEMENTS_SHOWN 16             /* as text */
#define BYTES_MAX (INT64_C(16) << 20) /* of one tensor, for its statistics */
#define TOTAL_MAX (INT64_C(64) << 20) /* of all */

/* The order of struct row's values. */
static const struct prb_ring_column columns[] = {
    {"depth", "", "of the frame, 0: innermost", PRB_RING_INTEGER},
    {"func", "", "of the frame", PRB_RING_TEXT},
    {"name", "", "of the variable", PRB_RING_TEXT},
    {"type", "", "of the object", PRB_RING_TEXT},
    {"dtype", "", "of the elements", PRB_RING_TEXT},
    {"shape", "", "as Python shows it", PRB_RING_TEXT},
    {"device", "", "cpu, cuda:0; empty of numpy", PRB_RING_TEXT},
    {"requires_grad", "", "", PRB_RING_BOOLEAN},
    {"elements", "count", "", PRB_RING_INTEGER},
    {"nan", "count", "NULL: too large, or not readable", PRB_RING_INTEGER},
    {"inf", "count", "", PRB_RING_INTEGER},
    {"zero", "count", "", PRB_RING_INTEGER},
    {"min", "", "", PRB_RING_REAL},
    {"max", "", "", PRB_RING_REAL},
    {"mean", "", "of the finite ones", PRB_RING_REAL},
    {"std", "", "", PRB_RING_REAL},
    {"norm", "", "", PRB_RING_REAL},
    {"first", "", "elements", PRB_RING_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

struct row {
    struct prb_ring_value values[COLUMNS];
    size_t count;
};

static void add_integer(struct row *row, int64_t value)
{
    row->values[row->count++] = (struct prb_ring_value){.integer = value};
}

static void add_text(struct row *row, const char *text)
{
    struct prb_ring_value value = {.null = !text};
    value.text = text ? text : "";
    value.len = strlen(value.text);
    row->values[row->count++] = value;
}

static void add_real(struct row *row, double real)
{
    struct prb_ring_value value = {.null = isnan(real)};
    value.real = real;
    row->values[row->count++] = value;
}

static void shape_text(const struct prb_tensor *tensor, struct prb_buf *out)
{
    prb_buf_addc(out, '[');
    for (unsigned i = 0; i < tensor->dims; i++)
        prb_buf_addf(out, "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
    prb_buf_addc(out, ']');
}

static bool is_small(const struct prb_tensor *tensor, int64_t *left)
{
    int64_t bytes;
    if (tensor->unreadable[0] ||
        __builtin_mul_overflow(tensor->numel, (int64_t)tensor->item_size, &bytes) ||
        bytes > BYTES_MAX || bytes > *left)
        return false;
    *left -= bytes;
    return true;
}

/* Reading all elements would fill the dump with them: what came in is forgotten again. */
static void add_statistics(struct prb_target *copy, const struct prb_tensor *tensor, int64_t *left,
                           struct row *row)
{
    struct prb_statistics found;
    size_t before = prb_mem_record_pages(copy->mem);
    bool have = is_small(tensor, left) && prb_tensor_statistics(copy, tensor, NULL, &found, NULL);
    prb_mem_record_cut(copy->mem, before);
    const int64_t counts[] = {have ? found.nan : 0, have ? found.inf : 0, have ? found.zero : 0};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        add_integer(row, counts[i]);
        row->values[row->count - 1].null = !have;
    }
    add_real(row, have ? found.min : NAN);
    add_real(row, have ? found.max : NAN);
    add_real(row, have ? found.mean : NAN);
    add_real(row, have ? found.std : NAN);
    add_real(row, have ? found.norm : NAN);
}

static void add_tensor(struct prb_target *copy, const struct prb_frame *frame, size_t depth,
                       const struct prb_local *local, int64_t *left, struct prb_buf *rows)
{
    struct prb_tensor tensor;
    struct row row = {.count = 0};
    PRB_AUTO(prb_buf) struct prb_buf shape = {0};
    if (!local->addr || !prb_tensor_take(copy, local->addr, &tensor, NULL))
        return;
    shape_text(&tensor, &shape);
    PRB_AUTO_FREE char *first =
        tensor.unreadable[0] ? NULL : prb_tensor_text(copy, &tensor, ELEMENTS_SHOWN, NULL);
    add_integer(&row, (int64_t)depth);
    add_text(&row, frame->qualname ? frame->qualname : frame->name);
    add_text(&row, local->name);
    add_text(&row, local->type);
    add_text(&row, tensor.dtype);
    add_text(&row, shape.data);
    add_text(&row, tensor.device);
    add_integer(&row, tensor.requires_grad);
    add_integer(&row, tensor.numel);
    add_statistics(copy, &tensor, left, &row);
    add_text(&row, first ? first : tensor.unreadable);
    prb_crash_pack(columns, COLUMNS, row.values, rows);
}

void prb_crash_tensors(struct prb_target *copy, const struct prb_thread *thread)
{
    PRB_AUTO(prb_buf) struct prb_buf rows = {0};
    int64_t left = TOTAL_MAX;
    size_t looked = 0, depth = 0;
    for (size_t i = 0; i < thread->frame_count && depth < FRAMES_MAX; i++) {
        const struct prb_frame *frame = &thread->frames[i];
        if (frame->kind != PRB_FRAME_PYTHON)
            continue;
        for (size_t k = 0; k < frame->local_count && looked < VARIABLES_MAX; k++, looked++)
            add_tensor(copy, frame, depth, &frame->locals[k], &left, &rows);
        depth++;
    }
    if (rows.len)
        prb_crash_keep_table(copy->proc, "crash_tensors", columns, COLUMNS, &rows);
}
