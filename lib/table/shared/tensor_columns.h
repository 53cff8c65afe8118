/* What the tables of tensors share: columns of one tensor, and of its statistics. */
#ifndef PRB_TABLE_TENSOR_COLUMNS_H
#define PRB_TABLE_TENSOR_COLUMNS_H

#include "sql/table.h"
#include "tensor/tensor.h"

/* Columns of prb_row_tensor. */
#define PRB_TENSOR_COLUMNS                                                                         \
    {"shape", PRB_TEXT, "", "sizes of its dimensions, \"[8, 128]\""},                              \
        {"dtype", PRB_TEXT, "", "type of its elements, \"float32\""},                              \
        {"device", PRB_TEXT, "", "where its elements are, \"cpu\", \"cuda:0\", \"meta\""},         \
        {"numel", PRB_INTEGER, "count", "elements"},                                               \
        {"bytes", PRB_INTEGER, "bytes", "of its elements; views count as if they had their own"},  \
        {"layout", PRB_TEXT, "", "\"strided\", \"sparse_coo\", ..."},                              \
        {"requires_grad", PRB_INTEGER, "", "1: operations on it are recorded"},                    \
        {"version", PRB_INTEGER, "count", "changes in place; NULL: not counted"},                  \
        {"storage", PRB_INTEGER, "addr", "of its memory; tensors with equal ones share it"},       \
        {"storage_bytes", PRB_INTEGER, "bytes", "of that memory"}
/* Columns of prb_row_statistics, and their argument. */
#define PRB_STATISTICS_COLUMNS                                                                     \
    {"nan", PRB_INTEGER, "count", "elements that are NaN"},                                        \
        {"inf", PRB_INTEGER, "count", "infinite elements"},                                        \
        {"zero", PRB_INTEGER, "count", "elements that are 0"},                                     \
        {"min", PRB_REAL, "", "smallest element that is not NaN"},                                 \
        {"max", PRB_REAL, "", "largest element that is not NaN"},                                  \
        {"mean", PRB_REAL, "", "of the finite elements; of complex ones the real part"},           \
        {"std", PRB_REAL, "", "of the finite elements; with n - 1, as in torch"},                  \
        {"norm", PRB_REAL, "", "square root of the sum of the squares of the finite elements"}
#define PRB_STATISTICS_ARGUMENT                                                                    \
    {"with_statistics", PRB_INTEGER, "", "1: read all elements; else nan to norm are NULL",        \
     .hidden = true}

/* Tensor NULL: NULLs. */
void prb_row_tensor(struct prb_rows *rows, const struct prb_tensor *tensor);
/* NULLs, unless the statement asks for them and they can be computed.  why_out (cap bytes): why
 * not, or "". */
void prb_row_statistics(struct prb_rows *rows, struct prb_mem *mem, const struct prb_tensor *tensor,
                        char *why_out, size_t cap);
/* Whether the statement has with_statistics = 1. */
bool prb_rows_statistics(const struct prb_rows *rows);
/* The statistics of one tensor's gradient; false: it has none, or they cannot be computed. */
bool prb_grad_statistics(struct prb_objects *objects, struct prb_mem *mem,
                         const struct prb_tensor *tensor, struct prb_statistics *out);
void prb_row_real_unless_nan(struct prb_rows *rows, double value);

#endif
