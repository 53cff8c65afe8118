/* python.comm_collective: collectives of torch.distributed, as the probe's observer saw them. */
#include <string.h>

#include "table/recorded/each.h"
#include "table/shared/recorded_groups.h"
#include "table/shared/thread_columns.h"
#include "table/shared/torch_names.h"
#include "table/shared/unrecorded.h"

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s", "when it began, since the epoch"},
    PRB_TORCH_PROCESS_COLUMNS,
    PRB_TORCH_STEP_COLUMNS,
    {"micro_step", PRB_INTEGER, "", "outermost backwards of the step before it"},
    {"micro_batches", PRB_INTEGER, "count", "outermost backwards of the step; NULL: it goes on"},
    {"group", PRB_TEXT, "",
     "name of the process group, as the Flight Recorder has it; NULL: not known"},
    {"seq", PRB_INTEGER, "", "its place among those of the same op since recording began"},
    {"collective_seq_id", PRB_INTEGER, "",
     "its number in the group, the same in all its ranks, as the Flight Recorder has it; NULL: not "
     "known"},
    {"op", PRB_TEXT, "", "all_reduce, broadcast, …"},
    {"backend", PRB_TEXT, "", "gloo, nccl, …"},
    {"duration_ms", PRB_REAL, "ms", "until it was complete; NULL: the backend does not say"},
    {"bytes", PRB_INTEGER, "bytes", "of its tensors; NULL: not known"},
    {"tensor_shape", PRB_TEXT, "", "of its tensor; NULL: not known"},
    {"tensor_dtype", PRB_TEXT, "", "of its tensor; NULL: not known"},
    {"participate_ranks", PRB_TEXT, "", "of the group; NULL: not known"},
    {"group_rank", PRB_INTEGER, "id", "within the group; NULL: not known"},
    {"group_size", PRB_INTEGER, "count", "ranks of the group; NULL: not known"},
    {"async_op", PRB_INTEGER, "", "1: it ended on another thread than it began"},
    {"thread", PRB_INTEGER, "id", "native id of the thread that began it"},
    {"source", PRB_TEXT, "", "who saw it: observer"},
    {0},
};

struct filling {
    struct prb_rows *rows;
    struct prb_torch_names names;
    struct prb_groups groups;
    bool grouped; /* somebody asks for what only the Flight Recorder has */
};

/* "gloo:all_reduce" */
static void put_name(struct prb_rows *rows, const char *label, const char **backend_out)
{
    const char *colon = label ? strchr(label, ':') : NULL;
    prb_row_text(rows, colon ? colon + 1 : label);
    *backend_out = colon && strncmp(label, "gloo", (size_t)(colon - label)) == 0 ? "gloo" : NULL;
    if (colon)
        prb_row_textn(rows, label, (size_t)(colon - label));
    else
        prb_row_null(rows);
}

static bool is_collective(const struct prb_ring_value *values)
{
    return PRB_TRACE_STAGE((uint64_t)values[PRB_TRACE_PLACE].integer) == PRB_TRACE_COLLECTIVE;
}

static bool note(void *context, const struct prb_ring_value *values)
{
    struct filling *filling = context;
    return !is_collective(values) ||
           prb_groups_note(&filling->groups, PRB_TRACE_HIGH(values[PRB_TRACE_THREAD].integer),
                           values[PRB_TRACE_LABEL].integer, values[PRB_TRACE_OBJECT].integer,
                           values[PRB_TRACE_BEGIN].real);
}

static const char *label_of(const void *context, int64_t label)
{
    const struct filling *filling = context;
    return prb_torch_label_of(&filling->names, label);
}

/* What the Flight Recorder has of those that were seen. */
static bool join(struct filling *filling, struct prb_error *err)
{
    return !filling->grouped ||
           (prb_recorded_each(filling->rows, PRB_TRACE_RING, PRB_TRACE_COLUMNS, note, filling,
                              err) &&
            (prb_groups_join(filling->rows, &filling->groups, label_of, filling) ||
             prb_nomem(err)));
}

static bool put_row(void *context, const struct prb_ring_value *values)
{
    struct filling *filling = context;
    struct prb_rows *rows = filling->rows;
    const struct prb_torch_names *names = &filling->names;
    uint64_t place = (uint64_t)values[PRB_TRACE_PLACE].integer;
    int64_t owner = values[PRB_TRACE_THREAD].integer, order = values[PRB_TRACE_ORDER].integer;
    int64_t arming = PRB_TRACE_HIGH(owner), step = values[PRB_TRACE_STEP].integer;
    const struct prb_torch_ended *ended = prb_torch_step_at(names, arming, step);
    const char *ends;
    if (!is_collective(values))
        return true;
    const char *label = prb_torch_label_of(names, values[PRB_TRACE_LABEL].integer);
    const struct prb_group_entry *entry =
        filling->grouped
            ? prb_groups_find(&filling->groups, arming, values[PRB_TRACE_LABEL].integer,
                              values[PRB_TRACE_OBJECT].integer, values[PRB_TRACE_BEGIN].real)
            : NULL;
    prb_row_begin(rows);
    prb_row_real(rows, values[PRB_TRACE_BEGIN].real);
    prb_row_torch_process(rows, names);
    prb_row_torch_steps(rows, names, arming, step);
    prb_row_int(rows, PRB_TRACE_HIGH(order));
    prb_row_int_unless(rows, ended ? ended->micro_steps : -1, -1);
    prb_row_group(rows, entry);
    prb_row_int(rows, values[PRB_TRACE_OBJECT].integer);
    prb_row_group_number(rows, entry);
    put_name(rows, label, &ends);
    if (ends)
        prb_row_real(rows, (double)values[PRB_TRACE_DURATION].integer * 1e-6);
    else /* it ends when the GPU has been told */
        prb_row_null(rows);
    prb_row_group_tensors(rows, entry);
    prb_row_int(rows, (int64_t)PRB_TRACE_ASYNC(place));
    prb_row_int(rows, PRB_TRACE_LOW(owner));
    prb_row_text(rows, "observer");
    return true;
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    static const char *const of_group[] = {"group",        "collective_seq_id", "bytes",
                                           "tensor_shape", "tensor_dtype",      "group_rank",
                                           "group_size",   "participate_ranks"};
    struct filling filling = {.rows = rows};
    for (size_t i = 0; i < sizeof of_group / sizeof *of_group; i++)
        filling.grouped |= prb_rows_wants(rows, of_group[i]);
    bool good =
        prb_torch_names_read(rows, prb_rows_wants(rows, "micro_batches"), &filling.names, err) &&
        join(&filling, err) &&
        prb_recorded_each(rows, PRB_TRACE_RING, PRB_TRACE_COLUMNS, put_row, &filling, err);
    prb_torch_names_deinit(&filling.names);
    prb_groups_deinit(&filling.groups);
    good = good && prb_recorded_same(rows, "comm_collective", err);
    prb_note_unrecorded(rows, false);
    return good;
}

const struct prb_table prb_table_python_comm_collective = {
    .schema = "python",
    .name = "comm_collective",
    .doc = "collectives of torch.distributed, DDP's too, recorded while probing.torch.profiling is "
           "on",
    .columns = columns,
    .recorded = true,
    .fill = fill,
};
