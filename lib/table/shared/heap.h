/* The objects and torch modules of a statement's target, taken once for all its tables. */
#ifndef PRB_TABLE_HEAP_H
#define PRB_TABLE_HEAP_H

#include "inspect/heap.h"
#include "sql/table.h"

/* Borrowed until the statement ends; what is missing is in the rows' warning. */
struct prb_heap *prb_rows_heap(struct prb_rows *rows, struct prb_error *err);
/* The same with its modules. */
struct prb_heap *prb_rows_modules(struct prb_rows *rows, struct prb_error *err);

#endif
