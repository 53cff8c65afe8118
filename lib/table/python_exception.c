/* python.exception: what each Python thread has raised, handles, or was ended by, and what it came
 * from. */
#include "inspect/target.h"
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    PRB_THREAD_COLUMNS,
    {"state", PRB_TEXT, "",
     "raised (on its way), handled (its handler runs), last (nobody handled it)"},
    {"depth", PRB_INTEGER, "", "0: the exception itself, 1: what it came from, and so on"},
    {"link", PRB_TEXT, "", "cause or context of the one before"},
    {"type", PRB_TEXT, "", "qualified name of its class"},
    {"message", PRB_TEXT, "", "its text"},
    {"func", PRB_TEXT, "", "where it was raised"},
    {"file", PRB_TEXT, "", "of that place"},
    {"lineno", PRB_INTEGER, "", "in that file"},
    {"frames", PRB_INTEGER, "count", "of its traceback"},
    {"traceback", PRB_TEXT, "", "as Python prints it, without source lines"},
    {0},
};

static const char *const states[] = {
    [PRB_EXCEPTION_RAISED] = "raised",
    [PRB_EXCEPTION_HANDLED] = "handled",
    [PRB_EXCEPTION_LAST] = "last",
};

static void add_traceback(struct prb_rows *rows, const struct prb_exception *exception)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (size_t i = 0; i < exception->frame_count; i++)
        prb_buf_addf(&text, "  File \"%s\", line %d, in %s\n", exception->frames[i].filename,
                     exception->frames[i].line, exception->frames[i].name);
    prb_buf_addf(&text, "%s%s%s", exception->type, *exception->message ? ": " : "",
                 exception->message);
    prb_row_text(rows, prb_buf_ok(&text) ? text.data : NULL);
}

static void add_row(struct prb_rows *rows, const struct prb_stacks *stacks,
                    const struct prb_thread *thread, const struct prb_exception *exception,
                    size_t depth)
{
    const struct prb_frame *last =
        exception->frame_count ? &exception->frames[exception->frame_count - 1] : NULL;
    prb_row_begin(rows);
    prb_thread_cells(rows, stacks, thread);
    prb_row_text(rows, states[exception->state]);
    prb_row_int(rows, (int64_t)depth);
    prb_row_text(rows, exception->link);
    prb_row_text(rows, exception->type);
    prb_row_text(rows, exception->message);
    prb_row_text(rows, last ? last->name : NULL);
    prb_row_text(rows, last ? last->filename : NULL);
    prb_row_int_unless(rows, last ? last->line : 0, 0);
    prb_row_int(rows, (int64_t)exception->frame_count);
    add_traceback(rows, exception);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct prb_stacks *stacks = prb_rows_stacks(rows, err);
    struct prb_exceptions **all =
        stacks ? prb_exceptions_all(prb_rows_target(rows), stacks, err) : NULL;
    if (!all)
        return false;
    for (size_t t = 0; t < stacks->thread_count; t++)
        for (size_t i = 0; all[t] && i < all[t]->count; i++)
            add_row(rows, stacks, &stacks->threads[t], &all[t]->items[i], i);
    prb_exceptions_all_free(all, stacks->thread_count);
    return true;
}

const struct prb_table prb_table_python_exception = {
    .schema = "python",
    .name = "exception",
    .doc =
        "exceptions on their way, being handled, or that ended a thread, with what they came from",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
