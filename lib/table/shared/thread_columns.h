/* The columns that say which thread a row belongs to: the same in every table of stacks. */
#ifndef PRB_TABLE_THREAD_COLUMNS_H
#define PRB_TABLE_THREAD_COLUMNS_H

#include "sql/table.h"

#define PRB_THREAD_COLUMNS                                                                         \
    {"pid", PRB_INTEGER, "id", "process, in the pid namespace of the caller"},                     \
        {"interpreter", PRB_INTEGER, "id",                                                         \
         "its interpreter, 0: the main one; NULL: not a Python thread"},                           \
        {"thread_id", PRB_INTEGER, "id", "threading.get_ident(); NULL: not a Python thread"},      \
        {"os_thread_id", PRB_INTEGER, "id", "kernel thread, in the pid namespace of the caller"},  \
        {"thread_name", PRB_TEXT, "", "threading.Thread.name, else the kernel's name"}

void prb_thread_cells(struct prb_rows *rows, const struct prb_stacks *stacks,
                      const struct prb_thread *thread);
/* "holding", "waiting" or "none" */
const char *prb_gil_text(enum prb_gil_state state);
/* An integer, or NULL where it is the value that means not known. */
void prb_row_int_unless(struct prb_rows *rows, int64_t value, int64_t unknown);

#endif
