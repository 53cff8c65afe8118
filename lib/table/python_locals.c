/* python.locals: a row for each bound local variable of each Python frame. */
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    PRB_THREAD_COLUMNS,
    {"depth", PRB_INTEGER, "count",
     "of its frame, as python.backtrace counts in the same statement"},
    {"func", PRB_TEXT, "", "co_name of its frame"},
    {"file", PRB_TEXT, "", "co_filename of its frame"},
    {"lineno", PRB_INTEGER, "", "current line of its frame"},
    {"name", PRB_TEXT, "", "of the variable"},
    {"type", PRB_TEXT, "", "qualified name of the object's type, such as torch.Tensor"},
    {"value", PRB_TEXT, "", "what repr() prints, cut at SET probing.repr_limit characters"},
    {"address", PRB_INTEGER, "addr", "of the object"},
    {"arg", PRB_INTEGER, "", "1: an argument of the function"},
    {0},
};

static void add_local(struct prb_rows *rows, const struct prb_stacks *stacks,
                      const struct prb_thread *thread, const struct prb_frame *frame, int64_t depth,
                      const struct prb_local *local)
{
    prb_row_begin(rows);
    prb_thread_cells(rows, stacks, thread);
    prb_row_int(rows, depth);
    prb_row_text(rows, frame->name);
    prb_row_text(rows, frame->filename);
    prb_row_int_unless(rows, frame->line, 0);
    prb_row_text(rows, local->name);
    prb_row_text(rows, local->type);
    prb_row_text(rows, local->repr);
    prb_row_int_unless(rows, (int64_t)local->addr, 0);
    prb_row_int(rows, local->arg);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct prb_stacks *stacks = prb_rows_stacks(rows, err);
    if (!stacks)
        return false;
    bool native = prb_rows_needs(rows) & PRB_NEED_NATIVE;
    for (size_t t = 0; t < stacks->thread_count; t++) {
        const struct prb_thread *thread = &stacks->threads[t];
        int64_t depth = 0;
        for (size_t f = 0; f < thread->frame_count; f++) {
            const struct prb_frame *frame = &thread->frames[f];
            for (size_t i = 0; i < frame->local_count; i++)
                add_local(rows, stacks, thread, frame, depth, &frame->locals[i]);
            depth += native || frame->kind != PRB_FRAME_NATIVE;
        }
    }
    return true;
}

const struct prb_table prb_table_python_locals = {
    .schema = "python",
    .name = "locals",
    .doc = "the local variables of all Python frames",
    .columns = columns,
    .needs_target = true,
    .needs = PRB_NEED_LOCALS,
    .fill = fill,
};
