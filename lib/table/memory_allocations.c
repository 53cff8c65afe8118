/* memory_allocations: who allocates, and who keeps it, by sampled allocations. */
#include <string.h>
#include <time.h>

#include "allocation/allocation.h"
#include "base/json_text.h"
#include "base/real.h"
#include "table/shared/moment_columns.h"

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s", "end of the row's interval, since the epoch"},
    {"pid", PRB_INTEGER, "id", "process, in the pid namespace of the caller"},
    {"rank", PRB_INTEGER, "id", "of the process in its job; NULL: it has none", .of_rank = true},
    {"thread", PRB_INTEGER, "id", "that allocated, as threading.get_native_id() says"},
    {"function_name", PRB_TEXT, "",
     "the innermost Python function, else the native one; NULL: its code is gone"},
    {"file", PRB_TEXT, "", "of that function"},
    {"lineno", PRB_INTEGER, "", "the line in it that allocated"},
    {"kind", PRB_TEXT, "",
     "python (objects and their memory), native (malloc and mmap), torch_cpu (libc10's)"},
    {"allocated_bytes", PRB_INTEGER, "bytes", "allocated in the interval, estimated"},
    {"allocations", PRB_INTEGER, "count", "blocks that this was, estimated"},
    {"live_bytes", PRB_INTEGER, "bytes", "of the row's blocks, those that live now, estimated"},
    {"live_count", PRB_INTEGER, "count", "so many blocks"},
    {"samples", PRB_INTEGER, "count", "on which the row rests"},
    {"error", PRB_REAL, "bytes", "one standard deviation of live_bytes"},
    {"stack", PRB_TEXT, "",
     "JSON: the frames, the innermost first, each with function, file and lineno"},
    {"since", PRB_REAL, "s",
     "when sampling was switched on, since the epoch: older blocks are "
     "not known"},
    {0},
};

static void add_stack(struct prb_buf *out, const struct prb_site_names *site)
{
    prb_buf_adds(out, "[");
    for (size_t i = 0; i < site->count; i++) {
        const struct prb_site_name *name = &site->items[i];
        const char *function = name->function ? name->function : "?";
        prb_buf_addf(out, "%s{\"function\":", i ? "," : "");
        prb_json_add_text(out, function, strlen(function));
        if (name->file) {
            prb_buf_adds(out, ",\"file\":");
            prb_json_add_text(out, name->file, strlen(name->file));
        }
        if (name->line > 0)
            prb_buf_addf(out, ",\"lineno\":%d", name->line);
        prb_buf_adds(out, "}");
    }
    prb_buf_adds(out, "]");
}

/* rank: of the process, which takes its environment and those above it to find. */
static void add_row(struct prb_rows *rows, const struct prb_allocations *allocations,
                    const struct prb_cell *cell, const struct prb_site_names *site, int rank)
{
    const struct prb_site_name *told = prb_site_told_by(site);
    prb_row_begin(rows);
    prb_row_real(rows, prb_cell_time(allocations, cell));
    prb_row_int(rows, prb_rows_target(rows)->info.pid);
    prb_row_int_unless(rows, rank, -1);
    prb_row_int(rows, cell->thread);
    prb_row_text(rows, told ? told->function : NULL);
    prb_row_text(rows, told ? told->file : NULL);
    prb_row_int_unless(rows, told ? told->line : 0, 0);
    prb_row_text(rows, prb_allocation_kind_name(allocations->sites[cell->site].kind));
    prb_row_int(rows, (int64_t)prb_round(cell->bytes));
    prb_row_int(rows, (int64_t)prb_round(cell->count));
    prb_row_int(rows, (int64_t)prb_round(prb_greater(cell->live_bytes, 0)));
    prb_row_int(rows, (int64_t)prb_round(prb_greater(cell->live_count, 0)));
    prb_row_int(rows, cell->samples);
    prb_row_real(rows, prb_sqrt(prb_greater(cell->live_variance, 0)));
    if (prb_rows_wants(rows, "stack")) {
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        add_stack(&text, site);
        prb_row_textn(rows, text.data, text.len);
    } else {
        prb_row_null(rows);
    }
    prb_row_real(rows, allocations->head.since);
}

/* What the rows do not have. */
static void note(struct prb_rows *rows, const struct prb_region *head)
{
    if (head->until > 0) {
        time_t until = (time_t)head->until;
        struct tm parts;
        char when[32] = "?";
        if (gmtime_r(&until, &parts))
            strftime(when, sizeof when, "%H:%M:%S UTC", &parts);
        prb_rows_warn(rows, "sampling was switched off at %s: the rows are of that moment", when);
    } else if (!head->python && !head->why_no_python[0]) {
        prb_rows_warn(rows, "Python's allocator is not seen yet: its thread waits for the GIL");
    }
    if (head->why_no_python[0])
        prb_rows_warn(rows, "Python's allocator is not seen: %s", head->why_no_python);
    if (head->lost)
        prb_rows_warn(rows, "%llu samples had no room: too many different stacks",
                      (unsigned long long)head->lost);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    struct prb_target *target = prb_rows_target(rows);
    PRB_AUTO(prb_allocations) struct prb_allocations allocations = {0};
    PRB_AUTO(prb_allocation_names) struct prb_allocation_names names = {0};
    struct prb_error why = {0};
    if (!prb_allocations_read(target, &allocations, &why)) {
        if (why.code != PRB_NOT_FOUND)
            return prb_fail(err, why.code, "%s", why.text);
        prb_rows_warn(rows, "%s; `config probing.memory.profile=on` switches it on", why.text);
        return true;
    }
    if (!prb_allocation_names_find(target, &allocations, &names, err))
        return false;
    int rank = prb_process_rank((pid_t)target->info.pid);
    for (size_t i = 0; i < allocations.cell_count; i++)
        add_row(rows, &allocations, &allocations.cells[i], &names.sites[allocations.cells[i].site],
                rank);
    note(rows, &allocations.head);
    return true;
}

const struct prb_table prb_table_memory_allocations = {
    .schema = "main",
    .name = "memory_allocations",
    .doc = "who allocates memory, and who keeps it: estimates from sampled allocations, since "
           "`config probing.memory.profile=on`",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
