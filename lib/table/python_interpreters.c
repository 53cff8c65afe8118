/* python.interpreters: the interpreters of every runtime, and who holds each one's GIL. */
#include "table/thread_cells.h"
#include "target/target.h"

static const struct prb_column columns[] = {
    {"pid", PRB_INTEGER, "id", "process, in the pid namespace of the one who asks"},
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
    {"runtime", PRB_INTEGER, "count", "0: the process's first CPython; it may hold several"},
    {"layout", PRB_TEXT, "", "which version it is, and how that was found"},
    {0},
};

struct look {
    struct prb_rows *rows;
    const struct prb_target *target;
    size_t runtime;
    const struct prb_raw_stacks *raw;
    const struct prb_thread_facts *facts;
};

static void add_holder(const struct look *look, const struct prb_interpreter *interpreter)
{
    for (size_t i = 0; i < look->raw->thread_count && interpreter->gil_holder; i++) {
        if (look->raw->threads[i].tstate != interpreter->gil_holder)
            continue;
        const struct prb_thread_facts *facts = &look->facts[i];
        prb_row_int_unless(look->rows, (int64_t)look->raw->threads[i].thread_id, 0);
        prb_row_int_unless(look->rows, facts->task ? facts->task->tid : 0, 0);
        prb_row_text(look->rows, facts->name);
        return;
    }
    prb_row_null(look->rows);
    prb_row_null(look->rows);
    prb_row_null(look->rows);
}

static void add_interpreter(const struct look *look, size_t index)
{
    const struct prb_interpreter *interpreter = &look->raw->interpreters[index];
    int64_t threads = 0;
    for (size_t i = 0; i < look->raw->thread_count; i++)
        threads += look->raw->threads[i].interpreter == index;
    prb_row_begin(look->rows);
    prb_row_int(look->rows, look->target->info.pid);
    prb_row_int(look->rows, interpreter->id);
    prb_row_int(look->rows, (int64_t)interpreter->addr);
    prb_row_int(look->rows, threads);
    prb_row_int(look->rows, interpreter->gc);
    prb_row_int(look->rows, look->raw->finalizing);
    prb_row_int_unless(look->rows, (int64_t)interpreter->gil, 0);
    add_holder(look, interpreter);
    prb_row_int(look->rows, (int64_t)look->runtime);
    prb_row_text(look->rows, look->target->runtimes[look->runtime].py->origin);
}

static bool fill_runtime(struct look *look, const struct prb_tasks *tasks, struct prb_error *err)
{
    struct prb_target *target = prb_rows_target(look->rows);
    const struct prb_runtime *runtime = &target->runtimes[look->runtime];
    PRB_AUTO(prb_arena) struct prb_arena arena = {0};
    look->raw = prb_sampler_take(runtime->sampler, prb_proc_live(target->proc) ? 0 : 1, err);
    if (!look->raw)
        return false;
    PRB_AUTO_FREE struct prb_thread_facts *facts =
        calloc(look->raw->thread_count + 1, sizeof *facts);
    if (!facts)
        return prb_fail(err, PRB_NOMEM, "out of memory");
    prb_objects_clear(runtime->objects);
    prb_threads_identify(target, runtime, look->raw, tasks, &arena, facts);
    look->facts = facts;
    for (size_t i = 0; i < look->raw->interpreter_count; i++)
        add_interpreter(look, i);
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_target *target = prb_rows_target(rows);
    PRB_AUTO(prb_tasks) struct prb_tasks tasks = {0};
    if (!prb_proc_tasks(target->proc, &tasks, err))
        return false;
    for (size_t i = 0; i < target->runtime_count; i++) {
        struct look look = {.rows = rows, .target = target, .runtime = i};
        if (!fill_runtime(&look, &tasks, err))
            return false;
    }
    return prb_proc_check(target->proc, err);
}

const struct prb_table prb_table_python_interpreters = {
    .schema = "python",
    .name = "interpreters",
    .doc = "the interpreters of the process, and who holds each one's GIL",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
