/*
 * python.backtrace: a row for each frame of each thread.
 *
 * Native frames and threads without Python are shown when the statement asks for them:
 * python.backtrace(1), WHERE with_native = 1, or a WHERE term on frame_type other than frame_type =
 * 'Python'.  One statement is one view, so they are then in every use of the table in it, but for
 * those with_native = 0.  depth counts the rows shown.
 */
#include <string.h>

#include "base/json_text.h"
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    {"ip", PRB_INTEGER, "addr", "program counter of a native frame, code object of a Python frame"},
    {"file", PRB_TEXT, "",
     "co_filename; of native code its source where that is known (SET probing.native_lines = on), "
     "else the mapped file"},
    {"func", PRB_TEXT, "", "co_name, or the demangled symbol"},
    {"lineno", PRB_INTEGER, "", "current line (not the function's first); NULL: not known"},
    {"depth", PRB_INTEGER, "count", "0: innermost"},
    {"frame_type", PRB_TEXT, "", "Python, Native, or Broken (the walk ended here; error says why)",
     .asks = PRB_NEED_NATIVE, .unless = "Python"},
    PRB_THREAD_COLUMNS,
    {"qualname", PRB_TEXT, "", "co_qualname (3.11 and later), else as func"},
    {"module", PRB_TEXT, "", "native frames: the mapped file"},
    {"line", PRB_INTEGER, "", "the same as lineno"},
    {"column", PRB_INTEGER, "bytes",
     "of the current position, from 0, as co_positions() (3.11 and later)"},
    {"end_line", PRB_INTEGER, "", "where the current position ends"},
    {"end_column", PRB_INTEGER, "bytes", "where the current position ends"},
    {"first_line", PRB_INTEGER, "", "of the function"},
    {"locals", PRB_TEXT, "", "a JSON object: names to what repr() prints",
     .needs = PRB_NEED_LOCALS},
    {"is_entry", PRB_INTEGER, "", "1: the outermost frame of one call of the evaluator from C"},
    {"guessed", PRB_INTEGER, "", "1: found among the stack's words, without unwind information"},
    {"gil_state", PRB_TEXT, "", "of the thread: holding, waiting or none"},
    {"active", PRB_INTEGER, "", "1: the thread runs, or holds the GIL"},
    {"unstable", PRB_INTEGER, "", "1: no two readings were equal; the stack may mix two moments"},
    {"error", PRB_TEXT, "", "why the walk ended here"},
    {"with_native", PRB_INTEGER, "", "1: with native frames; 0: without", .hidden = true,
     .asks = PRB_NEED_NATIVE, .unless = "0"},
    {0},
};

static const char *const frame_types[] = {[PRB_FRAME_PYTHON] = "Python",
                                          [PRB_FRAME_NATIVE] = "Native",
                                          [PRB_FRAME_BROKEN] = "Broken",
                                          [PRB_FRAME_TASK] = "Task"};

static void add_locals(struct prb_rows *rows, const struct prb_frame *frame)
{
    if (frame->kind != PRB_FRAME_PYTHON || !prb_rows_wants(rows, "locals")) {
        prb_row_null(rows);
        return;
    }
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    prb_buf_addc(&text, '{');
    for (size_t i = 0; i < frame->local_count; i++) {
        const struct prb_local *local = &frame->locals[i];
        prb_buf_adds(&text, i ? ", " : "");
        prb_json_add_text(&text, local->name, strlen(local->name));
        prb_buf_adds(&text, ": ");
        if (local->repr)
            prb_json_add_text(&text, local->repr, strlen(local->repr));
        else
            prb_buf_adds(&text, "null");
    }
    prb_buf_addc(&text, '}');
    prb_row_text(rows, prb_buf_ok(&text) ? text.data : NULL);
}

static void add_frame(struct prb_rows *rows, const struct prb_stacks *stacks,
                      const struct prb_thread *thread, const struct prb_frame *frame, int64_t depth)
{
    bool broken = frame->kind == PRB_FRAME_BROKEN;
    prb_row_begin(rows);
    prb_row_int_unless(rows, (int64_t)frame->code, 0);
    prb_row_text(rows, frame->filename ? frame->filename : frame->module);
    prb_row_text(rows, broken ? NULL : frame->name);
    prb_row_int_unless(rows, frame->line, 0);
    prb_row_int(rows, depth);
    prb_row_text(rows, frame_types[frame->kind]);
    prb_thread_cells(rows, stacks, thread);
    prb_row_text(rows, broken ? NULL : frame->qualname ? frame->qualname : frame->name);
    prb_row_text(rows, frame->module);
    prb_row_int_unless(rows, frame->line, 0);
    prb_row_int_unless(rows, frame->column, -1);
    prb_row_int_unless(rows, frame->end_line, 0);
    prb_row_int_unless(rows, frame->end_column, -1);
    prb_row_int_unless(rows, frame->first_line, 0);
    add_locals(rows, frame);
    prb_row_int(rows, frame->is_entry);
    prb_row_int(rows, frame->guessed);
    prb_row_text(rows, prb_gil_text(thread->gil));
    prb_row_int(rows, thread->active);
    prb_row_int(rows, thread->unstable);
    prb_row_text(rows, broken ? frame->name : NULL);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct prb_stacks *stacks = prb_rows_stacks(rows, err);
    if (!stacks)
        return false;
    const struct prb_value *argument = prb_rows_argument(rows, "with_native");
    bool native = prb_rows_needs(rows) & PRB_NEED_NATIVE;
    if (argument && argument->type == PRB_INTEGER)
        native = argument->integer != 0;
    for (size_t t = 0; t < stacks->thread_count; t++) {
        const struct prb_thread *thread = &stacks->threads[t];
        int64_t depth = 0;
        for (size_t f = 0; f < thread->frame_count; f++)
            if (native || (thread->has_python && thread->frames[f].kind != PRB_FRAME_NATIVE))
                add_frame(rows, stacks, thread, &thread->frames[f], depth++);
    }
    return true;
}

const struct prb_table prb_table_python_backtrace = {
    .schema = "python",
    .name = "backtrace",
    .doc = "the frames of all threads, innermost first; native ones too with python.backtrace(1)",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
