/* python.interpreters: the interpreters of every runtime, and who holds each one's GIL. */
#include "inspect/target.h"
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    {"pid", PRB_INTEGER, "id", "process, in the pid namespace of the caller"},
    {"interpreter", PRB_INTEGER, "id", "0: the main one"},
    {"address", PRB_INTEGER, "addr", "of its PyInterpreterState"},
    {"threads", PRB_INTEGER, "count", "Python threads"},
    {"gc", PRB_INTEGER, "", "1: collects garbage now"},
    {"finalizing", PRB_INTEGER, "", "1: the runtime is ending"},
    {"gil_address", PRB_INTEGER, "addr", "of the GIL's struct; NULL: not known, or free-threaded"},
    {"gil_thread_id", PRB_INTEGER, "id",
     "threading.get_ident() of its holder; NULL: nobody holds it"},
    {"gil_os_thread_id", PRB_INTEGER, "id", "kernel thread of its holder"},
    {"gil_thread_name", PRB_TEXT, "", "threading.Thread.name of its holder"},
    {"runtime", PRB_INTEGER, "count", "0: the process's first CPython; it may have several"},
    {"layout", PRB_TEXT, "", "which version it is, and how that was found"},
    {0},
};

/* One runtime's interpreters, in the reading that the tables of stacks show. */
struct look {
    struct prb_rows *rows;
    const struct prb_target *target;
    const struct prb_stacks *stacks;
    size_t runtime;
    const struct prb_raw_stacks *raw;
};

/* Whether a thread of the stacks runs in this interpreter: ids of interpreters repeat in each
 * runtime. */
static bool belongs(const struct look *look, size_t index, const struct prb_thread *thread)
{
    if (!thread->has_python || thread->interpreter != look->raw->interpreters[index].id)
        return false;
    bool known = look->target->runtime_count == 1;
    for (size_t i = 0; i < look->raw->thread_count && !known; i++)
        known = look->raw->threads[i].interpreter == index &&
                look->raw->threads[i].thread_id == thread->thread_id;
    return known;
}

static void add_holder(const struct look *look, const struct prb_thread *holder)
{
    prb_row_int_unless(look->rows, holder ? (int64_t)holder->thread_id : 0, 0);
    prb_row_int_unless(look->rows, holder ? holder->os_thread_id : 0, 0);
    prb_row_text(look->rows, holder ? holder->name : NULL);
}

static void add_interpreter(const struct look *look, size_t index)
{
    const struct prb_interpreter *interpreter = &look->raw->interpreters[index];
    const struct prb_thread *holder = NULL;
    int64_t threads = 0;
    for (size_t i = 0; i < look->stacks->thread_count; i++) {
        const struct prb_thread *thread = &look->stacks->threads[i];
        if (!belongs(look, index, thread))
            continue;
        threads++;
        holder = thread->gil == PRB_GIL_HOLDING ? thread : holder;
    }
    prb_row_begin(look->rows);
    prb_row_int(look->rows, look->target->info.pid);
    prb_row_int(look->rows, interpreter->id);
    prb_row_int(look->rows, (int64_t)interpreter->addr);
    prb_row_int(look->rows, threads);
    prb_row_int(look->rows, interpreter->gc);
    prb_row_int(look->rows, look->raw->finalizing);
    prb_row_int_unless(look->rows, (int64_t)interpreter->gil, 0);
    add_holder(look, holder);
    prb_row_int(look->rows, (int64_t)look->runtime);
    prb_row_text(look->rows, look->target->runtimes[look->runtime].py->origin);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    const struct prb_target *target = prb_rows_target(rows);
    struct look look = {.rows = rows, .target = target, .stacks = prb_rows_stacks(rows, err)};
    for (; look.stacks && look.runtime < target->runtime_count; look.runtime++) {
        look.raw = prb_sampler_last(target->runtimes[look.runtime].sampler);
        for (size_t i = 0; i < look.raw->interpreter_count; i++)
            add_interpreter(&look, i);
    }
    return look.stacks != NULL;
}

const struct prb_table prb_table_python_interpreters = {
    .schema = "python",
    .name = "interpreters",
    .doc = "the interpreters of the process, and who holds each one's GIL",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
