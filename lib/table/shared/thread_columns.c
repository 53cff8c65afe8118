/* Cells that tables of stacks share. */
#include "table/shared/thread_columns.h"

void prb_row_int_unless(struct prb_rows *rows, int64_t value, int64_t unknown)
{
    if (value == unknown)
        prb_row_null(rows);
    else
        prb_row_int(rows, value);
}

void prb_thread_cells(struct prb_rows *rows, const struct prb_stacks *stacks,
                      const struct prb_thread *thread)
{
    prb_row_int(rows, stacks->target.pid);
    prb_row_int_unless(rows, thread->interpreter, -1);
    prb_row_int_unless(rows, (int64_t)thread->thread_id, 0);
    prb_row_int_unless(rows, thread->os_thread_id, 0);
    prb_row_text(rows, thread->name);
}

const char *prb_gil_text(enum prb_gil_state state)
{
    static const char *const texts[] = {
        [PRB_GIL_NONE] = "none", [PRB_GIL_WAITING] = "waiting", [PRB_GIL_HOLDING] = "holding"};
    return texts[state];
}
