/* python.torch_nccl_flight_record: the collectives that torch.distributed has recorded itself. */
#include "table/shared/recorder.h"
#include "table/shared/thread_columns.h"

static const struct prb_column columns[] = {
    PRB_RECORDING_COLUMNS,
    {"record_id", PRB_INTEGER, "id", "counts up in the process; gaps: overwritten"},
    {"pg_id", PRB_INTEGER, "id", "process group, counted in the process"},
    {"pg_name", PRB_TEXT, "", "its name: the same in all ranks"},
    {"pg_desc", PRB_TEXT, "", "what the program calls it: default_pg and the like"},
    {"collective_seq_id", PRB_INTEGER, "", "of the collective in its group: the same in all ranks"},
    {"p2p_seq_id", PRB_INTEGER, "", "of a send or receive in its group"},
    {"op_id", PRB_INTEGER, "", "counts both"},
    {"is_p2p", PRB_INTEGER, "", "1: a send or receive"},
    {"profiling_name", PRB_TEXT, "", "backend and operation: gloo:all_reduce"},
    {"state", PRB_TEXT, "", "scheduled, started, completed; gloo's never leave scheduled"},
    {"input_sizes", PRB_TEXT, "", "JSON: the shape of each tensor"},
    {"input_dtypes", PRB_TEXT, "", "JSON"},
    {"output_sizes", PRB_TEXT, "", "JSON: the shape of each tensor"},
    {"output_dtypes", PRB_TEXT, "", "JSON"},
    {"time_created_ns", PRB_INTEGER, "ns", "when it was called, since the epoch"},
    {"time_discovered_started_ns", PRB_INTEGER, "ns",
     "when torch saw that it had started; NULL: not seen (gloo's never)"},
    {"time_discovered_completed_ns", PRB_INTEGER, "ns",
     "when torch saw that it was complete; NULL: not seen (gloo's never)"},
    {"duration_ns", PRB_INTEGER, "ns", "as the device measured it; NULL: not measured"},
    {"timeout_ms", PRB_INTEGER, "ms", "after which torch gives it up"},
    {"retired", PRB_INTEGER, "", "1: it is over"},
    {"thread_name", PRB_TEXT, "", "of the thread that called it; NULL: torch does not say"},
    {0},
};

/* Milliseconds with a fraction, to ns. */
static void put_duration(struct prb_rows *rows, const json_t *entry)
{
    const json_t *ms = json_object_get(entry, "duration_ms");
    if (json_is_number(ms))
        prb_row_int(rows, (int64_t)(json_number_value(ms) * 1e6));
    else
        prb_row_json_int(rows, entry, "duration_ns");
}

static void put(struct prb_rows *rows, const struct prb_recording *recording, const json_t *entry)
{
    const json_t *group = json_object_get(entry, "process_group");
    prb_recording_row(rows, recording);
    prb_row_json_int(rows, entry, "record_id");
    prb_row_json_int(rows, entry, "pg_id");
    prb_row_json_text(rows, json_array_get(group, 0));
    prb_row_json_text(rows, json_array_get(group, 1));
    prb_row_json_int(rows, entry, "collective_seq_id");
    prb_row_json_int(rows, entry, "p2p_seq_id");
    prb_row_json_int(rows, entry, "op_id");
    prb_row_int(rows, json_is_true(json_object_get(entry, "is_p2p")));
    prb_row_json_text(rows, json_object_get(entry, "profiling_name"));
    prb_row_json_text(rows, json_object_get(entry, "state"));
    prb_row_json_text(rows, json_object_get(entry, "input_sizes"));
    prb_row_json_text(rows, json_object_get(entry, "input_dtypes"));
    prb_row_json_text(rows, json_object_get(entry, "output_sizes"));
    prb_row_json_text(rows, json_object_get(entry, "output_dtypes"));
    prb_row_json_time(rows, entry, "time_created_ns");
    prb_row_json_time(rows, entry, "time_discovered_started_ns");
    prb_row_json_time(rows, entry, "time_discovered_completed_ns");
    put_duration(rows, entry);
    prb_row_json_int(rows, entry, "timeout_ms");
    prb_row_int(rows, json_is_true(json_object_get(entry, "retired")));
    prb_row_json_text(rows, json_object_get(entry, "thread_name"));
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    PRB_AUTO(prb_recording) struct prb_recording recording = {0};
    if (!prb_recording_take(rows, prb_rows_target(rows), &recording, err))
        return false;
    prb_recording_note_empty(rows, &recording);
    size_t i, k;
    json_t *recorder, *entry;
    json_array_foreach(recording.texts, i, recorder)
        json_array_foreach(json_object_get(recorder, "entries"), k, entry)
            put(rows, &recording, entry);
    return true;
}

const struct prb_table prb_table_python_torch_nccl_flight_record = {
    .schema = "python",
    .name = "torch_nccl_flight_record",
    .doc =
        "collectives that torch.distributed recorded itself (Flight Recorder; gloo's after PyTorch "
        "2.9), read as the query runs",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
