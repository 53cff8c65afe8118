/* python.threads: a row for each Python thread (for each interpreter that it runs in). */
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    PRB_THREAD_COLUMNS,
    {"comm", PRB_TEXT, "", "the kernel's name of the thread"},
    {"os_state", PRB_TEXT, "",
     "the kernel's state: R running, S sleeping, D waiting for the disk, T stopped"},
    {"active", PRB_INTEGER, "", "1: runs, or holds the GIL"},
    {"gil_state", PRB_TEXT, "", "holding, waiting or none"},
    {"gc", PRB_INTEGER, "", "1: collects garbage now"},
    {"unstable", PRB_INTEGER, "", "1: no two readings of its stack were equal"},
    {"frames", PRB_INTEGER, "count", "Python frames"},
    {"func", PRB_TEXT, "", "of the innermost Python frame"},
    {"file", PRB_TEXT, "", "of the innermost Python frame"},
    {"lineno", PRB_INTEGER, "", "current line of the innermost Python frame"},
    {0},
};

static void add_top(struct prb_rows *rows, const struct prb_thread *thread)
{
    const struct prb_frame *top = NULL;
    int64_t count = 0;
    for (size_t i = 0; i < thread->frame_count; i++) {
        if (thread->frames[i].kind != PRB_FRAME_PYTHON)
            continue;
        top = top ? top : &thread->frames[i];
        count++;
    }
    prb_row_int(rows, count);
    if (!top)
        return;
    prb_row_text(rows, top->name);
    prb_row_text(rows, top->filename);
    prb_row_int_unless(rows, top->line, 0);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct prb_stacks *stacks = prb_rows_stacks(rows, err);
    if (!stacks)
        return false;
    for (size_t t = 0; t < stacks->thread_count; t++) {
        const struct prb_thread *thread = &stacks->threads[t];
        if (!thread->has_python)
            continue;
        prb_row_begin(rows);
        prb_thread_cells(rows, stacks, thread);
        prb_row_text(rows, thread->comm);
        if (thread->os_state)
            prb_row_textn(rows, &thread->os_state, 1);
        else
            prb_row_null(rows);
        prb_row_int(rows, thread->active);
        prb_row_text(rows, prb_gil_text(thread->gil));
        prb_row_int(rows, thread->gc);
        prb_row_int(rows, thread->unstable);
        add_top(rows, thread);
    }
    return true;
}

const struct prb_table prb_table_python_threads = {
    .schema = "python",
    .name = "threads",
    .doc = "the Python threads of all interpreters: names, GIL, what each does",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
